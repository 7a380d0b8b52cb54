#!/usr/bin/env bash
# Builds the images localhost/muniment, localhost/muniment-postgres and localhost/muniment-prometheus, and a list of the
# contents of each.
#
#   service/deploy/build.sh FOLDER
#
# Needs root, a Debian 12 with mmdebstrap and buildah, and the environment of `make`. Debian's packages come from the apt
# sources of this machine, Python's from where pip is set up to look: only in the versions, and with the hashes, of
# requirements.lock. FOLDER keeps the root file systems: remove it to get Debian's updates.
set -euo pipefail

out=$(realpath -m "${1:?"say which folder to build in"}")
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python}
lock=service/requirements.lock
mkdir -p "$out"

# rootfs NAME PACKAGE,…: without manuals.
rootfs() {
    local file=$out/$1.tar
    test -e "$file" && return
    echo >&2 "Making the root file system of $1: a minute or more"
    local sources=()
    for source in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
        test -s "$source" && sources+=("$source")
    done
    mmdebstrap --quiet --variant=essential --include="$2" \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        '' "$file.part" "${sources[@]}" --format=tar
    mv "$file.part" "$file"
}

# Python's packages of the server for Debian's Python.
site() {
    echo >&2 "Collecting Python's packages"
    local for_image=(--quiet --disable-pip-version-check --only-binary :all: --python-version 3.11)
    local wheels=$out/wheels
    rm -rf "$wheels" "$out/site"
    "$python" -m pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir "$wheels" clients/python .
    local own=("$wheels"/*.whl)
    sed -E '/--hash/d; s/ *\\$//' $lock > "$out/versions.txt"
    "$python" -m pip download "${for_image[@]}" --constraint "$out/versions.txt" \
        --find-links "$wheels" --dest "$wheels" 'muniment-server[console,http,identity,semantic,tracing]'
    for wheel in "$wheels"/*.whl; do
        [[ " ${own[*]} " == *" $wheel "* ]] || grep -qF "sha256:$(sha256sum < "$wheel" | cut -d' ' -f1)" $lock ||
            { echo >&2 "$wheel has none of the hashes in $lock"; exit 1; }
    done
    "$python" -m pip install "${for_image[@]}" --no-compile --no-index --no-deps --target "$out/site" "$wheels"/*.whl
}

# image NAME FOLDER FILE: from a root file system of the same name.
image() {
    echo >&2 "Building localhost/$1"
    podman import --quiet "$out/$1.tar" "localhost/$1-base" > /dev/null
    buildah build --quiet --isolation chroot --format docker --build-arg BASE="localhost/$1-base" --tag "localhost/$1" \
        --file "$3" "$2" > /dev/null
}

rootfs muniment python3,libstdc++6,tzdata
rootfs muniment-postgres postgresql
rootfs muniment-prometheus prometheus
site
cp service/deploy/healthcheck.py "$out"

image muniment "$out" service/deploy/Containerfile
image muniment-postgres service/deploy service/deploy/postgres/Containerfile
image muniment-prometheus service/deploy service/deploy/prometheus/Containerfile
"$python" service/deploy/sbom.py image muniment "$out/muniment.tar" "$out/site" > "$out/muniment.cdx.json"
for image in muniment-postgres muniment-prometheus; do
    "$python" service/deploy/sbom.py image $image "$out/$image.tar" > "$out/$image.cdx.json"
done
