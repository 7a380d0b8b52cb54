#!/usr/bin/env bash
# The versions that the Rust client is built with. Cargo.lock names the registry at each of them, which nothing
# in this repository does: crates.lock is Cargo.lock without those lines, and Cargo.lock is made of it.
#
#   lock.sh restore    make Cargo.lock of crates.lock
#   lock.sh save       make crates.lock of Cargo.lock
set -euo pipefail
cd "$(dirname "$0")"

# The line itself, as cargo writes it where one dependency is locked.
registry() {
    local scratch
    scratch=$(mktemp -d)
    mkdir "$scratch/src"
    touch "$scratch/src/lib.rs"
    printf '[package]\nname = "lock"\n[dependencies]\nfastrand = "2"\n' > "$scratch/Cargo.toml"
    (cd "$scratch" && cargo generate-lockfile --quiet && grep --max-count=1 '^source = ' Cargo.lock)
    rm -r "$scratch"
}

restore() {
    local source
    source=$(registry)
    awk -v source="$source" '/^checksum = / { print source } { print }' crates.lock > Cargo.lock
}

save() {
    grep -v '^source = ' Cargo.lock > crates.lock
    touch Cargo.lock
}

case ${1-} in
restore | save) "$1" ;;
*) grep '^#  ' "$0" >&2 && exit 2 ;;
esac
