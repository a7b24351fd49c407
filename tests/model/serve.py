"""Run a small real model behind an OpenAI-compatible server on loopback, until standard input ends.

usage: python serve.py MODEL.gguf

Prints the base URL on one line. Runs in the environment that `.ci/model` makes, where `xllamacpp` is installed.
"""

from __future__ import annotations

import os
import socket
import sys


def main() -> None:
    import xllamacpp

    # One thread: the threads of llama.cpp spin while they wait, which costs more than it brings on a busy machine.
    threads = int(os.environ.get("MODEL_THREADS", "1"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = 8_192
    params.n_parallel = 2
    params.ui = False
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
