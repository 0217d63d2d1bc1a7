#!/usr/bin/env bash
# Makes the comment in a file one of the merge request, or changes the one that is there. The token is read from the
# environment and is never an argument, which others on the machine could see.
set -euo pipefail

comment=$1
notes="$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes"
if [ ! -f "$comment" ]; then
  echo "quorate has ended before it could say anything; there is nothing to comment" >&2
  exit 0
fi
ask() {
  printf 'header = "PRIVATE-TOKEN: %s"\n' "$QUORATE_COMMENT_TOKEN" |
    curl --config - --silent --show-error --fail --retry 3 "$@"
}
first=$(head -n 1 "$comment") # <!-- quorate plan -->: the same in each comment of that command
me=$(ask "$CI_API_V4_URL/user" | jq .id) # what others have written is theirs to change afterwards
id=""
for page in 1 2 3 4 5 6 7 8 9 10; do
  answer=$(ask "$notes?per_page=100&page=$page")
  id=$(jq -r --arg first "$first" --argjson me "$me" \
    'map(select((.system | not) and .author.id == $me and (.body | startswith($first)))) | .[0].id // empty' <<<"$answer")
  if [ -n "$id" ] || [ "$(jq length <<<"$answer")" -lt 100 ]; then break; fi
done
jq -Rs '{body: .}' "$comment" >"$comment.json"
if [ -n "$id" ]; then
  ask --request PUT --header 'Content-Type: application/json' --data-binary "@$comment.json" "$notes/$id" >/dev/null
else
  ask --request POST --header 'Content-Type: application/json' --data-binary "@$comment.json" "$notes" >/dev/null
fi
rm -f "$comment.json"
