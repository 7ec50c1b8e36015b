#!/bin/sh
# Starts `far`, lets `near` give it a task, and stops it. MAINSTEM names the binary, FAR_MODEL the model of `far`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mainstem=${MAINSTEM:-mainstem}
work=$(mktemp -d)
far=
trap 'if [ -n "$far" ]; then kill "$far"; fi; rm -rf "$work"' EXIT INT TERM

FAR_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export FAR_TOKEN
echo "$FAR_TOKEN" >"$work/tokens"

"$mainstem" serve -m "${FAR_MODEL:-demo}" --bind 127.0.0.1:0 --log off --token-file "$work/tokens" >"$work/url" &
far=$!
# It prints its address once it listens.
while ! [ -s "$work/url" ]; do
  kill -0 "$far"
  sleep 0.1
done

cp -R "$here/near" "$work/near"
sed "s#^url: .*#url: $(cat "$work/url")#" "$here/near/subagents/auditor.md" >"$work/near/subagents/auditor.md"
"$mainstem" run -a main -w "$work/near" --no-files --trust --remote-host 127.0.0.1 "$@" \
  "Have the discount change audited."
