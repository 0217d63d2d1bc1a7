#!/usr/bin/env bash
# Runs quorate $COMMAND with the arguments in $ARGS, one per line, and ends as it does.
set -euo pipefail

args=()
while IFS= read -r line; do
  if [ -n "$line" ]; then args+=("$line"); fi
done <<<"${ARGS:-}"

report="$RUNNER_TEMP/quorate.txt" code=0
quorate "$COMMAND" "${args[@]}" -o "text=$report" -o github=/dev/stderr -o "markdown=$RUNNER_TEMP/quorate.md" || code=$?
if [ -f "$report" ]; then
  cat "$report"
fi
{
  echo "exit-code=$code"
  echo "digest=$(sed -n 's/^plan \(sha256:[0-9a-f]\{64\}\)$/\1/p' "$report" 2>/dev/null || true)"
} >>"$GITHUB_OUTPUT"
exit "$code"
