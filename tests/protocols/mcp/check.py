"""The official MCP client, over HTTP or stdio, lists agents and calls them.

Arguments: the address of a server and its token, or `stdio` and a command.
"""

import asyncio
import sys
from contextlib import asynccontextmanager

import httpx2
import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def streams(arguments):
    if arguments[0] == "stdio":
        server = StdioServerParameters(command=arguments[1], args=arguments[2:])
        async with stdio_client(server) as (read, write):
            yield read, write
    else:
        headers = {"Authorization": f"Bearer {arguments[1]}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as client:
            async with streamable_http_client(f"{arguments[0]}/mcp", http_client=client) as (read, write, *_):
                yield read, write


async def approve(_, params):
    print("asked:", params.message.replace("\n", " "))
    return types.ElicitResult(action="accept", content={"allow": True})


async def main(arguments):
    async with streams(arguments) as (read, write):
        async with ClientSession(read, write, elicitation_callback=approve) as session:
            hello = await session.initialize()
            print("server:", hello.server_info.name)
            tools = (await session.list_tools()).tools
            print("tools:", ", ".join(tool.name for tool in tools))
            heard = []

            async def progress(done, total, message):
                heard.append((done, message))

            result = await session.call_tool("main", {"task": "go"}, progress_callback=progress)
            assert [done for done, _ in heard] == sorted({done for done, _ in heard}), heard
            print("progress:", len(heard) > 0, any("begins" in message for _, message in heard))
            print("reply:", result.content[0].text.split("\n")[0], result.is_error)
            where = result.structured_content["session"]
            again = await session.call_tool("main", {"task": "on", "session": where})
            print("again:", again.content[0].text.split("\n")[0], again.structured_content["session"] == where)
            try:
                await session.call_tool("stranger", {"task": "go"})
            except Exception as error:
                print("error:", error)


asyncio.run(main(sys.argv[1:]))
