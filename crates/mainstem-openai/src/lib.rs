//! OpenAI chat completions, and the many servers that speak it.
