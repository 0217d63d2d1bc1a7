#!/usr/bin/env bash
# Makes the comment of the last quorate command in a pull request, or changes the one that is there.
set -euo pipefail

comment="$RUNNER_TEMP/quorate.md"
if [ ! -f "$comment" ]; then
  echo "quorate has ended before it could say anything; there is nothing to comment" >&2
  exit 0
fi
first=$(head -n 1 "$comment") # <!-- quorate plan -->: the same in each comment of that command
id=$(FIRST="$first" gh api --paginate "$COMMENTS" \
  --jq '.[] | select(.user.type == "Bot" and (.body | startswith(env.FIRST))) | .id' | head -n 1)
if [ -n "$id" ]; then
  gh api --method PATCH "$COMMENT/$id" -F "body=@$comment" >/dev/null
else
  gh api --method POST "$COMMENTS" -F "body=@$comment" >/dev/null
fi
