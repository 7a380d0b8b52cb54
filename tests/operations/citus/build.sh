#!/bin/sh
# Build Citus from source and install it beside Debian's PostgreSQL 15, as root: tests/operations/citus/build.sh [ARCHIVE].
# DESTDIR installs below another root. Takes about two minutes of CPU.
set -eu

archive=${1:-$(dirname "$0")/../../../shared/data/citus-13.2.2.tar.xz}
pg_config=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}

if [ ! -r "$archive" ]; then
    echo "build.sh: there is no archive of Citus 13.2.2 at $archive: name it as the argument" >&2
    exit 66
fi
if [ ! -x "$pg_config" ]; then
    echo "build.sh: there is no $pg_config: install postgresql-15 postgresql-server-dev-15 libxml2-dev libxslt1-dev" \
        "libpam0g-dev libselinux1-dev libkrb5-dev libreadline-dev libzstd-dev liblz4-dev, or set PG_CONFIG" >&2
    exit 69
fi

sources=$(mktemp -d)
trap 'rm -rf "$sources"' EXIT
tar --extract --file "$archive" --directory "$sources" --strip-components 1 --no-same-owner
cd "$sources"
./configure PG_CONFIG="$pg_config" --without-libcurl --without-lz4 --without-zstd
# Since its minor versions of November 2025, Postgres exports a function of this name.
sed -i 's/^have_createdb_privilege(void)/citus_have_createdb_privilege(void)/' src/include/pg_version_compat.h
make -j"$(nproc)"
make install DESTDIR="${DESTDIR:-}"
