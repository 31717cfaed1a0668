"""Chats as a service sees them: a few system prompts, of which some are much more used than others, and sessions of several turns.

The shape is that of published traces of chat services (ShareGPT, LMSYS-Chat-1M, Mooncake): system prompts shared by all sessions of an
application, Zipf-distributed over applications; a geometric number of turns with a mean of five; questions and answers of log-normal
length; many sessions open at once, their turns interleaved. The same seed gives the same trace.
"""
import random
from dataclasses import dataclass, field

WORDS = ("river stone garden winter market letter window history number island music engine bridge forest simple answer question reason "
         "travel coffee science paper machine colour morning table silver village nature doctor memory science voice signal").split()


@dataclass(frozen=True)
class Shape:
    num_applications: int = 4
    system_words: int = 220
    question_words: int = 25
    mean_turns: float = 5


@dataclass
class Session:
    name: int
    messages: list = field(default_factory=list)
    questions: list = field(default_factory=list)


def words(random_source, mean, spread=0.6):
    """About `mean` words, log-normal."""
    count = max(3, round(random_source.lognormvariate(0, spread) * mean))
    return " ".join(random_source.choice(WORDS) for _ in range(count))


def sessions(seed, num_sessions, shape):
    source = random.Random(seed)
    systems = ["You are an assistant. " + words(source, shape.system_words, 0.3) for _ in range(shape.num_applications)]
    popularity = [1 / (rank + 1) for rank in range(shape.num_applications)]
    result = []
    for name in range(num_sessions):
        turns = 1
        while source.random() > 1 / shape.mean_turns:
            turns += 1
        result.append(Session(name, [{"role": "system", "content": source.choices(systems, popularity)[0]}],
                              [words(source, shape.question_words) for _ in range(turns)]))
    return result


def turns(seed, num_sessions, num_open=8, shape=Shape()):
    """Session by session that has a turn now, with its next question asked; whoever takes one appends the answer to its messages."""
    source = random.Random(seed + 1)
    waiting = sessions(seed, num_sessions, shape)
    running = []
    while waiting or running:
        while waiting and len(running) < num_open:
            running.append(waiting.pop(0))
        session = source.choice(running)
        session.messages.append({"role": "user", "content": session.questions.pop(0)})
        yield session
        if not session.questions:
            running.remove(session)
