"""What the demo says without a key: a script that reads the question, calls the real tools and tells their results.

It understands a few sentences and no more, and says so when asked for `help`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime

from agent.domain.model_calls import Json, ModelRequest, ReplyCall, ShownMessage, ShownResult
from agent.providers.scripted import ScriptedProvider, ScriptedReply, call

WORD_MS = 12  # as fast as a hosted model writes, so that the stream can be seen
SLOW_MS = 100
COUNT_MOST = 200
CALLS_MOST = 4

HELP = """\
This demo runs without a model, so I understand just a few sentences. Try one of these:

- where is order 1042?
- what happened to order 1042?
- list my orders
- help me choose a lamp (I ask two questions back)
- what goes with order 1042? (another agent, the stylist, is asked)
- cancel order 1043 (you are asked before it happens)
- refund order 1042 (the support lead approves it)
- orders of Bruno (for the shop's staff)
- count to 50 slowly (to try out reload and stop)
- help

With `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` in the environment a real model answers here instead, with the same tools.
"""
LOST = """\
I am only a script, so I did not understand that. I can look up an order, tell its history, list your orders or cancel \
one: ask me "where is order 1042?", or say `help`.
"""

NUMBER = re.compile(r"(?<![\w.,-])#?(\d{3,9})(?![\w-])")
GOES_WITH = re.compile(r"\b(goes? (?:well )?with|matche?s?)\b", re.IGNORECASE)
COUNT = re.compile(r"\bcount (?:up )?to (\d{1,4})\b", re.IGNORECASE)
CANCEL = re.compile(r"\bcancel\b", re.IGNORECASE)
REFUND = re.compile(r"\brefund\b|\bmoney back\b", re.IGNORECASE)
CHOOSE = re.compile(r"\b(help me choose|recommend|which lamp)\b", re.IGNORECASE)
QUESTIONS: list[Json] = [
    {
        "id": "room",
        "prompt": "Which room is the lamp for?",
        "options": [{"value": "desk", "label": "A desk"}, {"value": "living", "label": "The living room"}],
        "defaults": ["desk"],
        "allowFreeText": True,
    },
    {
        "id": "budget",
        "prompt": "What may it cost, in dollars?",
        "defaults": ["100"],
        "input": {"type": "number", "min": 5},
    },
]
HISTORY = re.compile(r"\b(history|happened|events|track(?:ing)?|story|since)\b", re.IGNORECASE)
MINE = re.compile(r"\b(my|all) orders\b|\bwhat (?:have|did) i (?:order|buy|bought)", re.IGNORECASE)
OF_CUSTOMER = re.compile(r"\borders? (?:of|for|by|from) (?:customer )?([^\W\d][\w' .-]*)", re.IGNORECASE)
POSSESSIVE = re.compile(r"\b([^\W\d][\w.-]*(?: [A-Z][\w.-]*)?)['’]s orders\b", re.IGNORECASE)
WORDS_FOR_HELP = re.compile(r"^\W*(help|\?|what can you do\W*|what do you understand\W*)\W*$", re.IGNORECASE)
GREETING = re.compile(r"^\W*(hi|hello|hey|good (?:morning|afternoon|evening)|ola|olá|oi)\b", re.IGNORECASE)
THANKS = re.compile(r"\b(thanks|thank you|cheers|great|perfect|obrigad[oa])\b", re.IGNORECASE)


def answer(request: ModelRequest) -> ScriptedReply:
    """The next thing to say: the result of a tool that has just run, else a reply to the last question."""
    last = request.messages[-1]
    if "stylist" in request.system.partition(".")[0]:
        return _styled(last)
    if last.role == "assistant" and last.tool_results:
        return ScriptedReply(_told(last), delay_ms=WORD_MS)
    if last.attachments:
        return _looked_at(last)
    return _reply_to(last.content, {tool.name for tool in request.tools})


def _reply_to(question: str, tools: set[str]) -> ScriptedReply:
    count = COUNT.search(question)
    if count:
        return _counted(min(int(count[1]), COUNT_MOST))
    if WORDS_FOR_HELP.match(question):
        return ScriptedReply(HELP, delay_ms=WORD_MS)
    calls, thought = _looked_up(question)
    if calls and tools.issuperset(planned.name for planned in calls):
        return ScriptedReply(reasoning=thought, calls=calls, delay_ms=WORD_MS)
    if THANKS.search(question):
        return ScriptedReply("You are welcome. Is there another order I can look up?", delay_ms=WORD_MS)
    if GREETING.match(question):
        return ScriptedReply("Hello! Ask me about an order by its number, or say `help`.", delay_ms=WORD_MS)
    return ScriptedReply(LOST, delay_ms=WORD_MS)


def _looked_at(last: ShownMessage) -> ScriptedReply:
    """A script sees no picture: it tells what came, which shows that it did."""
    files = _joined([f"{file.name} ({file.content_type}, {len(file.data or b'')} bytes)" for file in last.attachments])
    return ScriptedReply(f"I was given {files}. A real model would look at it; I am only a script.", delay_ms=WORD_MS)


def _styled(last: ShownMessage) -> ScriptedReply:
    """What the other agent of the demo says: it looks the order up, and has an opinion."""
    if not last.tool_results:
        numbers = [int(number) for number in NUMBER.findall(last.content)][:1]
        calls = [call("look_up_order", number=number) for number in numbers]
        return ScriptedReply("" if calls else "Which order is it?", calls=calls, delay_ms=WORD_MS)
    found = last.tool_results[0]
    if found.failed or not isinstance(found.output, dict):
        return ScriptedReply(_failure(found.output), delay_ms=WORD_MS)
    products = _joined([line["product"] for line in found.output["lines"]])
    return ScriptedReply(f"With {products} goes warm light: a linen shade and a bulb of 2700 K.", delay_ms=WORD_MS)


def _counted(last: int) -> ScriptedReply:
    return ScriptedReply(" ".join(str(number) for number in range(1, last + 1)), delay_ms=SLOW_MS)


def _looked_up(question: str) -> tuple[Sequence[ReplyCall], str]:
    """The calls that would answer the question, and the thought that leads to them."""
    numbers = list(dict.fromkeys(int(number) for number in NUMBER.findall(question)))[:CALLS_MOST]
    if CHOOSE.search(question):
        return [call("ask", questions=QUESTIONS)], "I need to know what the lamp is for."
    if numbers and GOES_WITH.search(question):
        task = f"What goes with order {numbers[0]}?"
        return [call("ask_stylist", task=task)], "That is a question of taste, so I ask the stylist."
    if numbers and CANCEL.search(question):
        calls = [call("cancel_order", f"call_{number}", number=number) for number in numbers]
        return calls, "They want it cancelled, which I may do once they have confirmed it."
    if numbers and REFUND.search(question):
        calls = [call("refund_order", f"call_{number}", number=number) for number in numbers]
        return calls, "They want their money back, which the support lead has to approve."
    if numbers:
        tool = "order_history" if HISTORY.search(question) else "look_up_order"
        what = "what has happened to" if tool == "order_history" else "the record of"
        orders = f"order {_joined([str(number) for number in numbers])}"
        calls = [call(tool, f"call_{number}", number=number) for number in numbers]
        return calls, f"The question is about {orders}, so I need {what} it in the shop's books."
    if MINE.search(question):
        return [call("list_customer_orders")], "They ask for their own orders, so I list those of this account."
    named = OF_CUSTOMER.search(question) or POSSESSIVE.search(question)
    if named:
        name = named[1].strip(" .")
        return [call("list_customer_orders", customer=name)], f"They ask for the orders of {name}."
    return [], ""


# ---- results in sentences --------------------------------------------------------------------------------------------


def _told(message: ShownMessage) -> str:
    return "\n\n".join(_sentences(result) for result in message.tool_results)


def _sentences(result: ShownResult) -> str:
    tell = TELLERS.get(result.name)
    if result.failed and isinstance(result.output, dict):  # nobody allowed it
        if result.output.get("rejected"):
            return "All right, I have changed nothing."
        return f"I have changed nothing. {result.output.get('reason', '')}"
    if result.failed or tell is None or not isinstance(result.output, dict):
        return f"{_failure(result.output)} Please check the number, or say `list my orders` to see what is there."
    return tell(result.output)


def _failure(output: Json) -> str:
    """The tool's own sentence, in whichever wrapping it was given."""
    text = output.get("error") if isinstance(output, dict) else output
    return text if isinstance(text, str) and text else "I could not look that up."


def _order(order: dict[str, Json]) -> str:
    items = _joined([f"{line['quantity']} × {line['product']}" for line in order["lines"]])
    where = f"Order {order['number']} {_state(order)}."
    last = order.get("last_event")
    happened = f" Last entry, {_moment(last['at'])}: {last['text']}." if last else ""
    return f"**{where}**{happened}\n\nIn it: {items}, {order['total']} in total, ordered on {_day(order['placed_on'])}."


def _state(order: dict[str, Json]) -> str:
    if order["delivered_on"]:
        return f"was delivered on {_day(order['delivered_on'])}"
    if order["status"] == "on its way":
        due = f", expected on {_day(order['expected_on'])}" if order["expected_on"] else ""
        return f"is on its way with {order['carrier']} ({order['tracking_code']}){due}"
    if order["expected_on"] and order["status"] != "cancelled":
        return f"is {order['status']} and should arrive by {_day(order['expected_on'])}"
    return f"is {order['status']}"


def _orders(found: dict[str, Json]) -> str:
    count = len(found["orders"])
    lines = [f"- **{order['number']}** {_state(order)} ({order['total']})" for order in found["orders"]]
    head = f"{found['customer']} has {'one order' if count == 1 else f'{count} orders'}:"
    more = ["", "There are older ones too; ask for them by number."] if found.get("more") else []
    return "\n".join([head, "", *lines, *more])


def _history(order: dict[str, Json]) -> str:
    events = [f"{place}. {_moment(event['at'])}: {event['text']}" for place, event in enumerate(order["events"], 1)]
    return "\n".join([f"Order {order['number']} is {order['status']}. What has happened so far:", "", *events])


def _cancelled(done: dict[str, Json]) -> str:
    return f"Order {done['cancelled']} is cancelled. You will have your money back within a week."


def _answer_of_another(answered: dict[str, Json]) -> str:
    return f"I asked our stylist. {answered['text']}"


def _chosen(answered: dict[str, Json]) -> str:
    room, budget = (", ".join(answered["answers"][name]) for name in ("room", "budget"))
    lamp = "Brass desk lamp ($84.95)" if room == "desk" else "Floor lamp, oak ($189.00)"
    assumed = " I assumed what you left open." if answered["defaulted"] else ""
    return f"For {room} and up to ${budget} I would look at the **{lamp}** first.{assumed}"


TELLERS: dict[str, Callable[[dict[str, Json]], str]] = {
    "look_up_order": _order,
    "list_customer_orders": _orders,
    "order_history": _history,
    "cancel_order": _cancelled,
    "ask": _chosen,
    "ask_stylist": _answer_of_another,
}


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]])) if parts else "nothing"


def _day(value: str) -> str:
    day = date.fromisoformat(value)
    return f"{day:%A}, {day.day} {day:%B}"


def _moment(value: str) -> str:
    at = datetime.fromisoformat(value)
    return f"{at.day} {at:%B} at {at:%H:%M}"


shop = ScriptedProvider(answer)  # the model of the demo without a key
