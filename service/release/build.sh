#!/usr/bin/env bash
# Builds what is published, from the commit that is checked out, into a folder:
#
#   service/release/build.sh FOLDER
#
# Needs the environment of `make`, Go, Node.js, Rust, a JDK and Maven. The same commit makes the same bytes.
set -euo pipefail
umask 022

out=$(realpath -m "${1:?"say which folder to build in"}")
cd "$(dirname "$0")/../.."
root=$PWD
python=$root/.venv/bin/python
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
git diff --quiet HEAD || echo >&2 'The last commit is built, without the changes after it.'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git -c advice.detachedHead=false clone --quiet --depth 1 "file://$root" "$scratch/source"
cd "$scratch/source"
rm -rf "$out"
mkdir -p "$out"/{python,npm,cargo,maven,go,sbom}

# bom NAME PURL: writes the bill of materials from the package URLs on standard input.
bom() {
    "$python" service/deploy/sbom.py package "$2" > "$out/sbom/$1.cdx.json"
}

# quietly COMMAND…: says what the command said if it fails.
quietly() {
    "$@" > "$scratch/log" 2>&1 || { cat >&2 "$scratch/log"; return 1; }
}

python_packages() {
    local folder
    for folder in clients/python . tests/clients/langgraph_store_conformance; do
        (cd $folder && quietly "$python" -m hatchling build --directory "$out/python")
    done
    requirements 'muniment[cli,langgraph,mcp]' | bom python-client "pkg:pypi/muniment@$version"
    requirements 'muniment-server[console,http,identity,semantic,tracing]' | bom python-server "pkg:pypi/muniment-server@$version"
    # It is not installed here: Python finds its metadata in the wheel.
    PYTHONPATH=$out/python/langgraph_store_conformance-$version-py3-none-any.whl requirements langgraph-store-conformance |
        bom langgraph-store-conformance "pkg:pypi/langgraph-store-conformance@$version"
}

requirements() {
    (cd "$root" && "$python" service/deploy/sbom.py requirements "$@") | sed "s|^pkg:pypi/muniment@.*|pkg:pypi/muniment@$version|"
}

npm_package() {
    (
        cd clients/typescript
        quietly npm ci --no-audit --no-fund --prefer-offline
        quietly npm pack --pack-destination "$out/npm"
        npm ls --omit=dev --all --parseable --long | sed -n 's|^/.*/node_modules/.*:\(@\?[^@:]*@[^:]*\).*|\1|p' |
            sed 's|^@|%40|; s|^|pkg:npm/|' | sort -u
    ) | bom typescript "pkg:npm/muniment@$version"
}

crate() {
    local target=$scratch/target
    clients/rust/lock.sh restore
    (
        cd clients/rust
        # The test that installs it compiles it.
        cargo package --quiet --locked --no-verify --target-dir "$target"
        cp "$target/package/muniment-client-$version.crate" "$out/cargo"
        cargo tree --locked --package muniment-client --edges normal --prefix none --format '{p}' |
            sed -n 's|^\([^ ]*\) v\([^ ]*\).*|pkg:cargo/\1@\2|p' | grep -v "^pkg:cargo/muniment-client@" | sort -u
    ) | bom rust "pkg:cargo/muniment-client@$version"
}

jar() {
    local maven=(quietly mvn -B -q -P dist -f clients/java/pom.xml "-Dproject.build.outputTimestamp=$SOURCE_DATE_EPOCH")
    "${maven[@]}" -Dmaven.test.skip -Dspotless.check.skip \
        "-DaltDeploymentRepository=dist::file:$out/maven" \
        package org.apache.maven.plugins:maven-deploy-plugin:3.1.4:deploy
    # Not part of an upload, and with the time of the build.
    find "$out/maven" -name 'maven-metadata.xml*' -delete
    "${maven[@]}" dependency:list -DincludeScope=runtime "-DoutputFile=$scratch/jars"
    # Frameworks are optional: a program that uses one brings it.
    sed -nE '/optional/d; s#^ +([^:]+):([^:]+):jar:([^:]+):(compile|runtime)\>.*#pkg:maven/\1/\2@\3#p' "$scratch/jars" |
        bom java "pkg:maven/example.muniment/muniment@$version"
}

go_modules() {
    go -C service/release/gomodule build -o "$scratch/gomodule" .
    go_module clients/go go
    go_module clients/go/adk go-adk
}

# go_module FOLDER NAME
go_module() {
    local path
    path=$(cd "$1" && go list -m)
    "$scratch/gomodule" "$1" "v$version" "$SOURCE_DATE_EPOCH" "$out/go"
    (cd "$1" && go list -deps -f '{{with .Module}}{{with .Version}}{{$.Module.Path}}@{{.}}{{end}}{{end}}' .) |
        sort -u | sed 's|^|pkg:golang/|' | bom "$2" "pkg:golang/$path@v$version"
}

for package in python_packages npm_package crate jar go_modules; do
    SECONDS=0
    $package
    printf '%-16s %3d s\n' $package $SECONDS
done
(cd "$out" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum > "$scratch/sums" && cp "$scratch/sums" SHA256SUMS)
