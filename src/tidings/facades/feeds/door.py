"""The feeds door as one application."""

from __future__ import annotations

from tidings.errors import NotFound
from tidings.facades.doors import App
from tidings.facades.parts import Parts
from tidings.ingest.asgi import Receive, Scope, Send, answer_problem
from tidings.problems import problem_of


def open_door(parts: Parts) -> App:
    """The application over these parts."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await answer_problem(send, problem_of(NotFound(f"there is nothing at {scope['path']}"), scope["path"]))

    return answer
