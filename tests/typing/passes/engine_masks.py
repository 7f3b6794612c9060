"""The engine's face is typed, though the module behind it is native."""

from typing import assert_type

from agentgram.engine import Engine, JsonSchema, Vocabulary, allocate_mask

vocabulary = Vocabulary.byte_level()
matcher = Engine(vocabulary).compile(JsonSchema({"type": "integer"})).matcher()
mask = allocate_mask(1, vocabulary.size)
assert_type(matcher.fill_mask(mask, row=0), bool)
assert_type(matcher.accept(49), bool)
assert_type(matcher.forced_bytes(), bytes)
assert_type(matcher.forced_tokens(), list[int])
assert_type(matcher.can_end, bool)
