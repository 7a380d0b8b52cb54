#!/usr/bin/env bash
# Everything that is made from the contract: generate it, or check that it is what it should be.
#
#   contract.sh generate    write the generated files
#   contract.sh check       format, lint, compatibility with the baseline, freshness; writes nothing
#   contract.sh baseline    make today's contract the baseline
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PWD/.venv-gen/bin:$PATH

# The folders that hold nothing but generated files, one for each client.
stubs=(
    clients/python/src/muniment/v1
    clients/go/gen
    clients/typescript/src/gen
    clients/rust/src/gen
)
# The other generated files.
api=proto/api.binpb
rules=service/muniment_server/monitor/rules.binpb
reference=service/docs/api.md
openapi=service/muniment_http/openapi.json
files=("$api" "$rules" "$reference" "$openapi")
baseline=proto/baseline.binpb.gz

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Generate all files into the folder $1, laid out as in the repository.
generate_into() {
    buf generate --template proto/buf.gen.yaml -o "$1"
    for file in "${files[@]}"; do
        mkdir -p "$1/$(dirname "$file")"
    done
    # The whole workspace: reflection shows what the contract imports, too.
    buf build proto --as-file-descriptor-set -o "$scratch/whole.binpb"
    python3 proto/tools/descriptor_sets.py "$scratch/whole.binpb" "$1/$api" "$1/$rules"
    python3 proto/tools/api_reference.py "$1/$rules" "$1/$reference"
    python3 proto/tools/openapi.py "$1/$rules" "$1/$openapi"
}

# Write the contract as an image into the file $1, for comparison with another.
image_into() {
    buf build proto --path proto/muniment --exclude-source-info -o "$1"
}

generate() {
    buf format -w proto --path proto/muniment
    generate_into "$scratch"
    for folder in "${stubs[@]}"; do
        rm -rf "$folder"
        mkdir -p "$(dirname "$folder")"
        cp -R "$scratch/$folder" "$folder"
    done
    for file in "${files[@]}"; do
        cp "$scratch/$file" "$file"
    done
}

check() {
    buf format -d --exit-code proto --path proto/muniment
    buf lint proto
    image_into "$scratch/image.binpb"
    buf breaking "$scratch/image.binpb" --against $baseline --config proto/buf.yaml --exclude-imports
    generate_into "$scratch"
    # Comparing folders also finds files that are stale or not committed yet.
    for folder in "${stubs[@]}"; do
        diff -r -x __pycache__ "$scratch/$folder" "$folder" || stale
    done
    for file in "${files[@]}"; do
        cmp "$scratch/$file" "$file" || stale
    done
}

stale() {
    echo >&2 "The generated files are not what proto/ makes them: run make proto."
    exit 1
}

baseline() {
    image_into "$scratch/image.binpb"
    gzip --no-name --best --stdout "$scratch/image.binpb" > $baseline
}

case ${1-} in
generate | check | baseline) "$1" ;;
*) grep '^#  ' "$0" >&2 && exit 2 ;;
esac
