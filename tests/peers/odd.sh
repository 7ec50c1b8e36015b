# An MCP server with bad habits. $1 is the file for its notes, $2 the habit.
note() { echo "$1" >> "$log"; }
say() { printf '%s\n' "$1"; }
log=$1
note "start $$"
# Whoever it starts holds its stdout.
if [ "$2" = family ]; then sleep 600 & note "child $!"; fi
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  token=$(printf '%s' "$line" | sed -n 's/.*"progressToken":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"odd","version":"1"}}' ;;
    *'"tools/list"'*)
      note list
      if [ "$2" = eager ]; then say '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; fi
      if [ "$2" = pages ]; then result='{"tools":[{"name":"more","inputSchema":{"type":"object"}}],"nextCursor":"on"}'
      else result='{"tools":[{"name":"plain","inputSchema":{"type":"object"}},{"name":"die","inputSchema":{"type":"object"}}]}'; fi ;;
    *'"name":"die"'*) exit 3 ;;
    *'"tools/call"'*)
      note call
      if [ "$2" = deaf ]; then sleep 600; fi
      result='{"content":[{"type":"text","text":"plain"}]}' ;;
    *'"notifications/'*) continue ;;
    *) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no such method\"}}"; continue ;;
  esac
  say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"
  if [ "$2" = late ] && [ -n "$token" ]; then
    say "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$token,\"progress\":1,\"message\":\"of $$-$id\"}}"
  fi
done
note end
