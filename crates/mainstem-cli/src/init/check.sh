#!/bin/sh
# Checks the agents of this folder, without a model: for CI.
set -eu
cd "$(dirname "$0")"
mainstem agents validate
mainstem doctor -m demo
