#!/usr/bin/env bash
# world.sh FOLDER SCRIPT: runs SCRIPT in a network of its own, in which example.com and the hosts below it are an HTTPS
# server on 127.0.0.1:443 with the identity FOLDER/server.key and FOLDER/server.pem. To be started under
#   unshare --user --map-root-user --net --mount --pid --fork --kill-child
# so that nothing it starts outlives it.
set -euo pipefail
folder=$1 script=$2
cd "$folder"
python3 - <<'PYTHON'
import fcntl, socket, struct
SIOCSIFFLAGS, UP_LOOPBACK_RUNNING = 0x8914, 0x49
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), SIOCSIFFLAGS,
            struct.pack("16sh", b"lo", UP_LOOPBACK_RUNNING))
PYTHON
echo "127.0.0.1 localhost example.com www.example.com api.example.com pins.example.com policy.example.com" >hosts
mount --bind hosts /etc/hosts
printf 'nameserver 127.0.0.1\noptions attempts:1 timeout:1\n' >resolv.conf
[ ! -f /etc/resolv.conf ] || mount --bind resolv.conf "$(readlink -f /etc/resolv.conf)"

cat >nginx.conf <<NGINX
user root; daemon off; master_process off; pid $folder/nginx.pid; error_log stderr crit; events {}
http {
  access_log off;
  client_body_temp_path $folder/t1; proxy_temp_path $folder/t2; fastcgi_temp_path $folder/t3;
  uwsgi_temp_path $folder/t4; scgi_temp_path $folder/t5;
  server {
    listen 127.0.0.1:443 ssl; ssl_certificate $folder/server.pem; ssl_certificate_key $folder/server.key;
    root $folder/www; location = / { default_type text/plain; return 200 "hello\\n"; }
  }
}
NGINX
mkdir -p www
nginx -p "$folder" -e stderr -c "$folder/nginx.conf" &

listeners() { grep -c ' 0A ' /proc/net/tcp || true; }
# Starts a command that serves, and waits until it listens.
serving() {
  local before
  before=$(listeners)
  "$@" >>served.log 2>&1 &
  for _ in $(seq 200); do
    [ "$(listeners)" -gt "$before" ] && return 0
    kill -0 $! 2>/dev/null || break
    sleep 0.05
  done
  cat served.log >&2
  return 1
}
nginx=$!
until [ "$(listeners)" -gt 0 ]; do kill -0 $nginx; sleep 0.05; done
source "$script"
