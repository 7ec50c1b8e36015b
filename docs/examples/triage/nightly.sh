#!/bin/sh
# Reports what is new in logs/ since the last night, and exits as mainstem does.
cd "$(dirname "$0")" || exit 2
exec mainstem run -a main --session triage --journal triage.db --approve never \
    --budget-tokens 400000 --timeout 30m -q "What is new in logs/?" < /dev/null > report.md
