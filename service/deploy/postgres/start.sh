#!/bin/sh
# Serves the database `muniment`. Makes it first if there is none, with the administrator's password from
# /etc/postgres/password.
set -eu
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
data=/var/lib/postgresql/data

if [ ! -e $data ]; then
    rm -rf $data.part
    initdb --username=postgres --pwfile=/etc/postgres/password --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 \
        --data-checksums $data.part
    echo 'CREATE DATABASE muniment' | postgres --single -D $data.part postgres
    mv $data.part $data
fi
exec postgres -D $data -c listen_addresses= -c unix_socket_directories=/run/postgresql "$@"
