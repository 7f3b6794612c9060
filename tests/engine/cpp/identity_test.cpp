// Rules are one where they look the same however far one follows them, and only there: random systems of rules, against a
// naive comparison, with hashes of few bits.
#include <map>
#include <random>
#include <thread>

#include "check.h"
#include "grammar/refine.h"
#include "grammar/rule.h"
#include "grammar/shared_rules.h"
#include "specs.h"

namespace {

using namespace ag;
using Classes = std::vector<std::uint32_t>;

// By rounds over everything, until nothing changes.
Classes naive(const Classes& first, const std::vector<Classes>& successors) {
  Classes classes = first;
  for (std::size_t count = 0;;) {
    std::map<std::vector<std::uint32_t>, std::uint32_t> numbers;
    Classes next;
    for (std::size_t i = 0; i < classes.size(); ++i) {
      std::vector<std::uint32_t> key{classes[i]};
      for (const std::uint32_t to : successors[i]) key.push_back(classes[to]);
      next.push_back(numbers.try_emplace(key, static_cast<std::uint32_t>(numbers.size())).first->second);
    }
    classes = next;
    if (numbers.size() == count) return classes;
    count = numbers.size();
  }
}

bool same_partition(const Classes& a, const Classes& b) {
  std::map<std::uint32_t, std::uint32_t> there, back;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (there.try_emplace(a[i], b[i]).first->second != b[i] || back.try_emplace(b[i], a[i]).first->second != a[i])
      return false;
  }
  return true;
}

void refinement() {
  std::mt19937 rng(1);
  for (int round = 0; round < 3000; ++round) {
    const std::uint32_t size = 1 + rng() % (round % 10 ? 8 : 60), kinds = 1 + rng() % 3;
    Classes kind;
    std::vector<Classes> successors(size);
    for (std::uint32_t i = 0; i < size; ++i) {
      kind.push_back(i < kinds ? std::min(i, size - 1) : rng() % kinds);
      for (std::uint32_t k = kind[i]; k < 3; ++k) successors[i].push_back(rng() % size);
    }
    CHECK(same_partition(refine(kind, successors), naive(kind, successors)));
  }
  constexpr std::uint32_t kLong = 4000;  // a chain, told apart from its end
  Classes kind(kLong);
  std::vector<Classes> successors(kLong);
  for (std::uint32_t i = 0; i < kLong; ++i) successors[i] = {std::min(i + 1, kLong - 1)};
  kind[kLong - 1] = 1;
  const Classes classes = refine(kind, successors);
  CHECK(*std::max_element(classes.begin(), classes.end()) == kLong - 1);
}

// Rules that are defined by one another; a part is a rule's number, or one of two literals.
struct System {
  struct Definition {
    enum Kind : std::uint32_t { kSeq, kChoice, kArray, kAlias } kind;
    std::vector<std::uint32_t> parts;
  };
  static constexpr std::uint32_t kLiterals = 1000;
  std::vector<Definition> rules;

  explicit System(std::mt19937& rng) {
    const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(rng() % n); };
    const std::uint32_t size = 1 + below(7), kinds = 1 + below(3), literals = 1 + below(2);
    for (std::uint32_t i = 0; i < size; ++i) {
      const auto any = [&] { return below(4) ? below(size) : kLiterals + below(literals); };
      Definition d{static_cast<Definition::Kind>(2 - below(kinds)), {any()}};
      if (d.kind != Definition::kArray) d.parts.push_back(any());
      if (d.kind == Definition::kChoice && d.parts[0] == d.parts[1]) d.parts[1] = kLiterals + (d.parts[0] == kLiterals);
      if (below(8) == 0) d = {Definition::kAlias, {below(size)}};
      rules.push_back(d);
    }
  }

  // Behind aliases; nothing for one that leads to itself.
  static constexpr std::uint32_t kDead = 999;
  std::uint32_t behind(std::uint32_t part) const {
    for (std::size_t steps = 0; part < kDead && rules[part].kind == Definition::kAlias; part = rules[part].parts[0])
      if (++steps > rules.size()) return kDead;
    return part;
  }

  // Null where nothing can be produced. `order` says in which the rules are defined.
  std::shared_ptr<const Fragment> build(TerminalPool& pool, std::uint32_t root, std::mt19937& order) const {
    Builder b(pool);
    std::vector<Symbol> reserved;
    for (std::size_t i = 0; i < rules.size(); ++i) reserved.push_back(b.reserve());
    std::vector<std::uint32_t> turn(rules.size());
    for (std::uint32_t i = 0; i < turn.size(); ++i) turn[i] = i;
    std::shuffle(turn.begin(), turn.end(), order);
    for (const std::uint32_t i : turn) {
      std::vector<Symbol> parts;
      for (const std::uint32_t part : rules[i].parts)
        parts.push_back(part >= kLiterals ? b.literal(part == kLiterals ? "a" : "b") : reserved[part]);
      Symbol body = parts[0];
      if (rules[i].kind == Definition::kSeq) body = b.seq(std::move(parts));
      if (rules[i].kind == Definition::kChoice) body = b.choice(std::move(parts));
      if (rules[i].kind == Definition::kArray) body = b.array({{}, parts[0]});
      b.define(reserved[i], body);
    }
    try {
      return b.finish(reserved[root]);
    } catch (const GrammarError&) {
      return nullptr;
    }
  }
};

// Two systems at a time on one pool: the same rule stands for equal ones, and for no others.
void systems(unsigned bits) {
  std::mt19937 rng(bits);
  std::size_t equal = 0;
  TerminalPool pool;
  pool.interner()->truncate(bits);
  std::vector<std::shared_ptr<const Fragment>> kept;  // of some earlier ones
  for (int round = 0; round < 1500; ++round) {
    const System systems[] = {System(rng), System(rng)};
    Classes kind;
    std::vector<Classes> successors;
    std::map<std::vector<std::uint32_t>, std::uint32_t> kinds;
    const auto size = static_cast<std::uint32_t>(systems[0].rules.size());
    for (const System& system : systems) {
      const std::uint32_t offset = &system == systems ? 0 : size;
      for (const auto& d : system.rules) {
        std::vector<std::uint32_t> own{d.kind};
        successors.emplace_back();
        for (const std::uint32_t part : d.parts) {
          const std::uint32_t to = system.behind(part);
          own.push_back(to < System::kDead ? 0 : to);
          if (to < System::kDead) successors.back().push_back(to + offset);
        }
        kind.push_back(kinds.try_emplace(own, static_cast<std::uint32_t>(kinds.size())).first->second);
      }
    }
    const Classes classes = naive(kind, successors);
    std::map<std::uint32_t, const Rule*> of_class;
    std::map<const Rule*, std::uint32_t> of_rule;
    for (const System& system : systems) {
      const std::uint32_t offset = &system == systems ? 0 : size;
      for (std::uint32_t i = 0; i < system.rules.size(); ++i) {
        const std::uint32_t at = system.behind(i);
        const auto fragment = system.build(pool, i, rng);
        if (!fragment) continue;
        const Rule* rule = fragment->root.rule;
        CHECK(rule->home && rule->home->rules[rule->place].get() == rule);
        Ending end;
        rule->write_min(0, {}, end);
        CHECK(end.units.size() == rule->min_length);
        if (at >= System::kDead) continue;
        const auto [known, fresh] = of_class.try_emplace(classes[at + offset], rule);
        if (!fresh) ++equal;
        CHECK(known->second == rule);
        CHECK(of_rule.try_emplace(rule, classes[at + offset]).first->second == classes[at + offset]);
        kept.push_back(fragment);
      }
    }
    if (kept.size() > 300) kept.clear();
  }
  CHECK(equal > 500);
  kept.clear();
  CHECK(pool.interner()->stats().things == 0);
  CHECK(pool.interner()->stats().bytes == 0);
}

// Rings of two kinds of arrays, entered anywhere: which rule is described first must not matter.
void rings() {
  std::mt19937 rng(3);
  TerminalPool pool;
  for (int round = 0; round < 300; ++round) {
    const std::size_t size = 4 + rng() % 9u;
    std::vector<char> kinds;
    for (std::size_t i = 0; i < size; ++i) kinds.push_back(static_cast<char>(rng() % 2));
    const auto build = [&](std::size_t first) {  // the rule that stands there
      Builder b(pool);
      std::vector<Symbol> ring;
      for (std::size_t i = 0; i < size; ++i) ring.push_back(b.reserve());
      for (std::size_t i = 0; i < size; ++i) {
        ArraySpec array{{}, ring[(i + 1) % size]};
        if (kinds[(first + i) % size]) array.max_items = 5;
        b.define(ring[i], b.array(array));
      }
      return b.finish(ring[0]);
    };
    const auto whole = build(0);
    const auto& rules = whole->root.rule->home->rules;
    CHECK(size % rules.size() == 0);
    const Rule* at = whole->root.rule;
    for (std::size_t i = 0; i < size; ++i) {
      CHECK(build(i)->root.rule == at);
      Rule::Edges edges;
      at->expand(1, {0}, edges);
      at = edges.back().rule;
    }
    CHECK(at == whole->root.rule);
  }
}

const Rule* root(EngineCore& core, std::string schema, std::vector<std::shared_ptr<const Grammar>>* kept) {
  kept->push_back(core.compile(test::schema(std::move(schema))));
  return kept->back()->fragment->root.rule;
}

// The same rules by whatever names and in whatever order; others where something differs.
void schemas() {
  const auto core = std::make_shared<EngineCore>(test::vocabulary(), EngineOptions{});
  std::vector<std::shared_ptr<const Grammar>> kept;
  const auto is = [&](std::string schema) { return root(*core, std::move(schema), &kept); };
  const Rule* list = is(R"({"type":"array","items":{"$ref":"#"}})");
  const Rule* two = is(
      R"({"$defs":{"x":{"type":"array","items":{"$ref":"#/$defs/y"}},"y":{"type":"array","items":{"$ref":"#/$defs/x"}}},
             "$ref":"#/$defs/y"})");
  CHECK(list == two);
  CHECK(list == is(R"({"type":"array","items":{"type":"array","items":{"$ref":"#"}}})"));
  CHECK(
      list ==
      is(R"({"$defs":{"l":{"type":"array","items":{"$ref":"#/$defs/l"}}},"type":"array","items":{"$ref":"#/$defs/l"}})"));
  CHECK(list != is(R"({"type":"array","items":{"$ref":"#"},"minItems":0,"maxItems":3})"));
  const auto json = [](const char* value, const char* object) {
    const std::string v = std::string("{\"$ref\":\"#/$defs/") + value + "\"}",
                      o = std::string("{\"$ref\":\"#/$defs/") + object + "\"}";
    return std::string("{\"$defs\":{\"") + value + R"(":{"anyOf":[{"type":"string"},)" + o + "]},\"" + object +
           R"(":{"type":"object","properties":{"left":)" + v + R"(,"right":)" + o +
           R"(},"additionalProperties":false}},"$ref":"#/$defs/)" + value + "\"}";
  };
  const Rule* value = is(json("value", "object"));
  CHECK(value == is(json("a", "b")) && value == is(json("b", "a")));
  const std::uint64_t before = core->stats().rules;
  is(R"({"title":"the same again","$defs":{"n":{"type":"object","properties":{"v":{"type":"string"}}}},
         "type":"object","properties":{"one":{"$ref":"#/$defs/n"},"other":{"$ref":"#/$defs/n"}}})");
  is(R"({"type":"object","properties":{"third":{"type":"object","properties":{"v":{"type":"string"}}}}})");
  CHECK(core->stats().rules == before + 3 + 3);  // three objects, and the three of a value of any kind
}

// Tools that have a large part in common hold it once: each of them costs what is its own.
void memory() {
  TerminalPool pool;
  std::string part;
  for (int i = 0; i < 200; ++i)
    part += (i ? ",\"p" : "\"p") + std::to_string(i) +
            R"(":{"type":"array","items":{"$ref":"#/$defs/part"},"maxItems":)" + std::to_string(i + 1) + "}";
  const auto tool = [&](int i) {
    const std::string text = R"({"$defs":{"part":{"type":"object","properties":{)" + part +
                             R"(}}},"type":"object","properties":{"own)" + std::to_string(i) +
                             R"(":{"$ref":"#/$defs/part"}},"additionalProperties":false})";
    return compile_schema(text, {Whitespace::kFlexible, false, false}, pool, {}, nullptr);
  };
  std::vector<std::shared_ptr<const Fragment>> kept{tool(0)};
  const std::size_t one = pool.interner()->stats().bytes;
  for (int i = 1; i < 200; ++i) kept.push_back(tool(i));
  CHECK(one > 50'000);
  CHECK(pool.interner()->stats().bytes - one < 199 * 2'000);
  for (const auto& fragment : kept) CHECK(fragment->bytes() < 500);
}

// Rules nest without a bound, and go without a stack.
void deep() {
  TerminalPool pool;
  std::shared_ptr<const Fragment> fragment;
  {
    Builder b(pool);
    Symbol at = b.literal("x");
    for (int i = 0; i < 100'000; ++i) at = b.array({{}, at});
    fragment = b.finish(at);
  }
  CHECK(pool.interner()->stats().things == 100'000);
  CHECK(fragment->shared[0]->count(1) == pool.interner()->stats().bytes && fragment->shared[0]->count(1) == 0);
  fragment = nullptr;
  CHECK(pool.interner()->stats().things == 0);
}

// A cycle of more rules than are compared stays the builder's own, and is settled all the same.
void large() {
  TerminalPool pool;
  for (const int size : {4096, 4097}) {
    Builder b(pool);
    std::vector<Symbol> ring;
    for (int i = 0; i < size; ++i) ring.push_back(b.reserve());
    for (int i = 0; i < size; ++i)
      b.define(ring[i], b.choice({b.seq({b.literal(std::to_string(i)), ring[(i + 1) % size]}), b.literal("x")}));
    const auto fragment = b.finish(ring[0]);
    CHECK((fragment->root.rule->home != nullptr) == (2 * size <= 4096));
    CHECK(fragment->root.rule->min_length == 1);
    CHECK(fragment->root.rule->nullable == false);
  }
}

// Many threads make, share and drop the same rules.
void threads() {
  TerminalPool pool;
  std::atomic<int> wrong{0};
  const auto work = [&](unsigned seed) {
    for (int round = 0; round < 300; ++round) {
      std::mt19937 of_system(round % 20), order(seed + round);
      const System system(of_system);
      const auto one = system.build(pool, 0, order), other = system.build(pool, 0, order);
      if (!one != !other || (one && one->root.rule != other->root.rule)) ++wrong;
    }
  };
  std::vector<std::thread> all;
  for (unsigned t = 0; t < 4; ++t) all.emplace_back(work, t);
  for (auto& t : all) t.join();
  CHECK(wrong == 0);
  CHECK(pool.interner()->stats().things == 0);
}

}  // namespace

int main() {
  refinement();
  for (const unsigned bits : {64u, 8u, 1u}) systems(bits);
  rings();
  schemas();
  memory();
  deep();
  large();
  threads();
  return failures ? 1 : 0;
}
