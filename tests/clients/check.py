"""The vendors' own clients, against the scripted server of the testing kit: what it plays must be what they read.

`cargo xtask ci` runs it with the address of the example `model_server`, which plays two turns: a thought, text and two calls; text."""
import json
import sys

url = sys.argv[1]

TOOLS = {"look": {"type": "object", "properties": {"at": {"type": "string"}}}, "see": {"type": "object", "properties": {}}}
CALLS = [("look", {"at": "größe"}), ("see", {})]


def openai_chat():
    from openai import OpenAI
    client = OpenAI(base_url=url + "/v1", api_key="k")
    tools = [{"type": "function", "function": {"name": n, "parameters": p}} for n, p in TOOLS.items()]
    messages = [{"role": "user", "content": "go"}]
    with client.chat.completions.stream(model="scripted", messages=messages, tools=tools, stream_options={"include_usage": True}) as stream:
        for _ in stream:
            pass
        end = stream.get_final_completion()
    message = end.choices[0].message
    assert message.content == "Two calls.", message
    assert [(c.function.name, json.loads(c.function.arguments or "{}")) for c in message.tool_calls] == CALLS
    assert end.choices[0].finish_reason == "tool_calls" and end.usage.prompt_tokens == 12, end
    messages.append(message.model_dump(exclude_none=True))
    messages += [{"role": "tool", "tool_call_id": c.id, "content": "42"} for c in message.tool_calls]
    for said in messages:
        said.pop("parsed", None)
        for call in said.get("tool_calls", []):
            call["function"].pop("parsed_arguments", None)
    second = "".join(c.choices[0].delta.content or "" for c in client.chat.completions.create(model="scripted", messages=messages, stream=True) if c.choices)
    assert second == "Done.", second


def openai_responses():
    from openai import OpenAI
    client = OpenAI(base_url=url + "/v1", api_key="k")
    tools = [{"type": "function", "name": n, "parameters": p, "strict": False} for n, p in TOOLS.items()]
    given = [{"role": "user", "content": "go"}]
    with client.responses.stream(model="scripted", input=given, tools=tools) as stream:
        for _ in stream:
            pass
        end = stream.get_final_response()
    assert end.output_text == "Two calls.", end
    calls = [i for i in end.output if i.type == "function_call"]
    assert [(c.name, json.loads(c.arguments)) for c in calls] == CALLS, calls
    assert end.status == "completed" and end.usage.input_tokens == 12, end
    given += [i.model_dump(exclude_none=True) for i in end.output]
    given += [{"type": "function_call_output", "call_id": c.call_id, "output": "42"} for c in calls]
    with client.responses.stream(model="scripted", input=given) as stream:
        for _ in stream:
            pass
        assert stream.get_final_response().output_text == "Done."


def anthropic():
    from anthropic import Anthropic
    client = Anthropic(base_url=url, api_key="k")
    tools = [{"name": n, "input_schema": p} for n, p in TOOLS.items()]
    messages = [{"role": "user", "content": "go"}]
    with client.messages.stream(model="scripted", max_tokens=99, messages=messages, tools=tools) as stream:
        text = "".join(stream.text_stream)
        end = stream.get_final_message()
    assert text == "Two calls.", text
    assert end.content[0].type == "thinking" and end.content[0].thinking == "Hm. " and end.content[0].signature, end
    calls = [b for b in end.content if b.type == "tool_use"]
    assert [(c.name, c.input) for c in calls] == CALLS, calls
    assert end.stop_reason == "tool_use" and end.usage.output_tokens == 7 and end.usage.input_tokens == 12, end
    messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in end.content]})
    messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": c.id, "content": "42"} for c in calls]})
    with client.messages.stream(model="scripted", max_tokens=99, messages=messages) as stream:
        assert "".join(stream.text_stream) == "Done."


def gemini():
    from google import genai
    from google.genai import types
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))
    tools = [types.Tool(function_declarations=[types.FunctionDeclaration(name=n, description=n, parameters_json_schema=p) for n, p in TOOLS.items()])]
    contents = [types.Content(role="user", parts=[types.Part(text="go")])]
    config = types.GenerateContentConfig(tools=tools, automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True))
    parts, usage = [], None
    for chunk in client.models.generate_content_stream(model="scripted", contents=contents, config=config):
        parts += chunk.candidates[0].content.parts or []
        usage = chunk.usage_metadata or usage
    assert "".join(p.text or "" for p in parts if not p.thought) == "Two calls.", parts
    calls = [p.function_call for p in parts if p.function_call]
    assert [(c.name, dict(c.args or {})) for c in calls] == CALLS, calls
    assert usage.prompt_token_count == 12, usage
    contents.append(types.Content(role="model", parts=parts))
    contents.append(types.Content(role="user", parts=[types.Part.from_function_response(name=c.name, response={"result": "42"}) for c in calls]))
    second = "".join(c.text or "" for c in client.models.generate_content_stream(model="scripted", contents=contents))
    assert second == "Done.", second


def ollama():
    from ollama import Client
    client = Client(host=url)
    tools = [{"type": "function", "function": {"name": n, "description": n, "parameters": p}} for n, p in TOOLS.items()]
    messages = [{"role": "user", "content": "go"}]
    text, calls, end = "", [], None
    for chunk in client.chat(model="scripted", messages=messages, tools=tools, stream=True):
        text += chunk.message.content or ""
        calls += chunk.message.tool_calls or []
        end = chunk
    assert text == "Two calls." and end.done and end.prompt_eval_count == 12, end
    assert [(c.function.name, dict(c.function.arguments)) for c in calls] == CALLS, calls
    messages.append({"role": "assistant", "content": text, "tool_calls": [c.model_dump() for c in calls]})
    messages += [{"role": "tool", "tool_name": c.function.name, "content": "42"} for c in calls]
    assert "".join(c.message.content or "" for c in client.chat(model="scripted", messages=messages, stream=True)) == "Done."


failed = 0
for check in [openai_chat, openai_responses, anthropic, gemini, ollama]:
    try:
        check()
        print(f"{check.__name__}: ok")
    except Exception as error:
        failed += 1
        print(f"{check.__name__}: {type(error).__name__}: {error}")
sys.exit(failed)
