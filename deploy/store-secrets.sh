#!/bin/sh
# Makes what aggregators and the store's server need to trust each other: a private CA, the server's
# certificate, a password, and the store's URL with both. Needs OpenSSL 3.
#
#     sh deploy/store-secrets.sh FOLDER NAME[:PORT]...
#
# Each NAME is one under which aggregators reach a server; several are a cluster. Only the owner of
# the folder can enter it. Its files can be read by whoever is given one: a container's user is
# nobody on its host. Keep ca.key elsewhere: it is needed for the next certificate alone.
set -eu
[ $# -ge 2 ] || { echo 'usage: store-secrets.sh FOLDER NAME[:PORT]...' >&2; exit 2; }
folder=$1
shift
umask 077
mkdir "$folder"  # an older one is never overwritten: its password is in use
cd "$folder"

hosts='' names=''
for host; do
    hosts=$hosts,$host
    names=$names,DNS:${host%:*}
done
hosts=${hosts#,} names=${names#,}

certificate() { # NAME DAYS OPENSSL_ARGUMENTS...
    name=$1 days=$2
    shift 2
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days "$days" \
        -keyout "$name.key" -out "$name.crt" "$@" 2>openssl.log || { cat openssl.log >&2; exit 1; }
    rm openssl.log
}

certificate ca 3650 -subj '/CN=veilcount store CA' \
    -addext basicConstraints=critical,CA:TRUE,pathlen:0 \
    -addext keyUsage=critical,keyCertSign,cRLSign
# Servers of a cluster are each other's clients.
certificate server 825 -CA ca.crt -CAkey ca.key -subj '/CN=veilcount store' \
    -addext basicConstraints=critical,CA:FALSE -addext keyUsage=critical,digitalSignature \
    -addext extendedKeyUsage=serverAuth,clientAuth -addext "subjectAltName=$names"

# Written by the shell itself: no other process has the password among its arguments.
password=$(openssl rand -hex 32)
echo "$password" >password
printf 'requirepass %s\nmasterauth %s\n' "$password" "$password" >password.conf
case $hosts in
*,*) echo "redis-cluster://:$password@$hosts?tls=on&ca=/run/secrets/veilcount/ca.crt" ;;
*) echo "rediss://:$password@$hosts/0?ca=/run/secrets/veilcount/ca.crt" ;;
esac >url
chmod 444 ca.crt server.crt server.key password password.conf url
