#!/bin/sh
# Double-click to open Tandem on macOS: the installed program, or the checkout that this file lies in.
root=$(cd "$(dirname "$0")/../.." && pwd)
for program in "$(command -v tandem-gui)" "$root/.venv/bin/tandem-gui"; do
    if [ -x "$program" ]; then
        nohup "$program" >/dev/null 2>&1 &
        exit 0
    fi
done
echo "Tandem is not installed. Install it with: python3 -m pip install \"$root\""
printf 'Press Enter to close. '
read -r _
exit 1
