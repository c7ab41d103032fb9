#!/usr/bin/env python3
"""Holds our mock server against the official clients, and our client against a mock of others.

Usage: check_protocols.py COMMBENCH LLM_ASK, with the packages of requirements.txt. Prints what is
wrong; exit code 1 when something is.
"""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import anthropic
import openai

KEY = "a-test-key"
TEXT = "Hello from the script, in several pieces."
failures = []


def expect(what, actual, expected):
    if actual != expected:
        failures.append(f"{what}: {actual!r}, expected {expected!r}")


def check_chat(url):
    client = openai.OpenAI(base_url=url, api_key=KEY)
    ask = [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]
    whole = client.chat.completions.create(model="m", messages=ask)
    expect("chat", whole.choices[0].message.content, TEXT)
    expect("chat usage", whole.usage.completion_tokens, (len(TEXT) + 3) // 4)
    pieces, usage = [], None
    for chunk in client.chat.completions.create(
        model="m", messages=ask, stream=True, stream_options={"include_usage": True}
    ):
        pieces += [c.delta.content or "" for c in chunk.choices]
        usage = chunk.usage or usage
    expect("streamed chat", "".join(pieces), TEXT)
    expect("streamed chat cached", usage.prompt_tokens_details.cached_tokens > 0, True)
    refused = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "please refuse"}]
    )
    expect("chat refusal", refused.choices[0].message.refusal, "I would rather not.")
    retried = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "please fail"}]
    )
    expect("chat after 429 and 500", retried.choices[0].message.content, TEXT)
    try:
        openai.OpenAI(base_url=url, api_key="wrong").models.list()
        client.with_options(api_key="wrong").chat.completions.create(model="m", messages=ask)
        failures.append("chat: a wrong key was taken")
    except openai.AuthenticationError:
        pass


def check_responses(url):
    client = openai.OpenAI(base_url=url, api_key=KEY)
    whole = client.responses.create(model="m", instructions="s", input="hi")
    expect("responses", whole.output_text, TEXT)
    cut = client.responses.create(model="m", input="cut it")
    expect("responses cut", cut.incomplete_details.reason, "max_output_tokens")
    pieces, end = [], None
    for event in client.responses.create(model="m", input="hi", stream=True):
        if event.type == "response.output_text.delta":
            pieces.append(event.delta)
        elif event.type == "response.completed":
            end = event.response
    expect("streamed responses", "".join(pieces), TEXT)
    expect("streamed responses end", end.output_text, TEXT)


def check_messages(url):
    client = anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key=KEY)
    ask = [{"role": "user", "content": "hi"}]
    whole = client.messages.create(model="m", max_tokens=99, system="s", messages=ask)
    expect("messages", whole.content[0].text, TEXT)
    with client.messages.stream(model="m", max_tokens=99, system="s", messages=ask) as stream:
        expect("streamed messages", "".join(stream.text_stream), TEXT)
        final = stream.get_final_message()
    expect("messages stop", final.stop_reason, "end_turn")
    expect("messages cached", final.usage.cache_read_input_tokens > 0, True)
    try:
        client.with_options(api_key="wrong").messages.create(model="m", max_tokens=9, messages=ask)
        failures.append("messages: a wrong key was taken")
    except anthropic.AuthenticationError:
        pass


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port):
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"nothing listens on port {port}")


def check_our_client(ask_program):
    """Also where one answer in three fails and one stream in five breaks."""
    port = free_port()
    llmock = pathlib.Path(sys.executable).with_name("llmock")
    server = subprocess.Popen(
        [llmock, "serve", "--port", str(port), "--response-style", "hello", "--log-level", "error"]
        + ["--error-rate", "429=0.2", "--error-rate", "503=0.1", "--stream-fault", "truncate=0.1"]
        + ["--stream-fault", "malformed=0.1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(port)
        url = f"http://127.0.0.1:{port}"
        environment = dict(os.environ, OPENAI_API_KEY="k", ANTHROPIC_API_KEY="k")
        environment.update(OPENAI_BASE_URL=url + "/v1", ANTHROPIC_BASE_URL=url + "/anthropic")
        for model in ["openai/gpt-4o", "openai-responses/gpt-4o", "anthropic/claude-sonnet-4-5"]:
            for _ in range(5):
                done = subprocess.run(
                    [ask_program, model, "hello"], env=environment, capture_output=True, text=True
                )
                if done.returncode != 0:
                    failures.append(f"{model}: {done.stderr.strip()}")
                    continue
                reply = json.loads(done.stdout)
                expect(model + " finish", reply["finish"], "stop")
                expect(model + " has text", reply["text"] != "", True)
                expect(model + " counts", (reply["usage"]["output"] or 0) > 0, True)
    finally:
        server.terminate()
        server.wait()


def main():
    commbench, ask_program = sys.argv[1:]
    script = pathlib.Path(__file__).with_name("script.yaml")
    mock = subprocess.Popen(
        [commbench, "mock-llm", "--script", script, "--quiet"], stdout=subprocess.PIPE, text=True
    )
    try:
        url = mock.stdout.readline().strip()
        if not re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", url):
            sys.exit(f"commbench mock-llm printed {url!r}")
        check_chat(url)
        check_responses(url)
        check_messages(url)
    finally:
        mock.send_signal(signal.SIGINT)
        expect("exit code of mock-llm", mock.wait(timeout=10), 0)
    check_our_client(ask_program)
    print("\n".join(failures) or "protocols: ok")
    sys.exit(1 if failures else 0)


main()
