"""`/v1`: the routes of OpenAI's API that a chat page needs, their bodies and answers, and conversations as topics."""
