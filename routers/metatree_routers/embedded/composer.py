"""The embedded composer: joins answers under their questions."""

from __future__ import annotations

from metatree._util.threads import off_loop
from metatree.protocols import Composer, ComposeRequest, Traits


class EmbeddedComposer(Composer):
    """Puts the answers under their questions, in the order of the questions, each once."""

    traits = Traits(any_loop=True)

    @off_loop
    def compose(self, request: ComposeRequest) -> str:
        """Return the joined text; questions without an answer are named at the end."""
        questions = list(
            dict.fromkeys([*request.questions, *(answer.question for answer in request.answers)])
        )
        blocks = []
        for question in questions:
            parts = [answer.answer.strip() for answer in request.answers if answer.question == question]
            # The last of several parts may say those before it again.
            texts = dict.fromkeys(
                text
                for i, text in enumerate(parts)
                if text
                and not any(text != later and f"\n{text}\n" in f"\n{later}\n" for later in parts[i + 1 :])
            )
            if texts:
                text = "\n\n".join(texts)
                blocks.append(text if len(questions) == 1 else f"{question.strip()}\n{text}")
        if request.open_questions:
            blocks.append("Not found: " + "; ".join(question.strip() for question in request.open_questions))
        return "\n\n".join(blocks)
