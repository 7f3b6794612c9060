// Random and mutated grammars, and random tokens through those that compile: for the address and undefined-behaviour
// sanitizers. What is looked for is a crash, a hang, an exception of another kind, a mask that disagrees with accept, or
// a state without an end.
//
//   fuzz COUNT [SEED]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "specs.h"

namespace {

using namespace ag;

const std::vector<std::string> kSchemas = {
    R"({"type":"object","properties":{"a":{"type":"string","minLength":1,"maxLength":5},"b":{"$ref":"#"}},"required":["a"]})",
    R"({"type":"array","items":{"anyOf":[{"type":"integer","minimum":-3,"maximum":99},{"enum":["x","\u00e9",null]}]},"maxItems":3})",
    R"({"oneOf":[{"type":"string","pattern":"^[a-z]{2,4}-\\d+$"},{"type":"number","multipleOf":0.5}]})",
    R"({"patternProperties":{"^x":{"type":"boolean"}},"additionalProperties":false,"minProperties":1,"maxProperties":3})",
    R"({"type":"string","format":"date-time","not":{"const":"2020-01-01T00:00:00Z"}})",
    R"({"allOf":[{"type":"integer","minimum":2},{"multipleOf":3}],"if":{"const":6},"then":true,"else":{"maximum":30}})",
    R"({"$defs":{"n":{"type":"object","properties":{"v":{"type":"null"},"k":{"type":"array","items":{"$ref":"#/$defs/n"}}}}},"$ref":"#/$defs/n"})",
    R"({"type":"array","prefixItems":[{"const":1}],"contains":{"type":"string"},"uniqueItems":true,"maxItems":2})",
};
const std::vector<std::string> kPatterns = {
    "^[a-z0-9-]{1,64}$", "(a|b)*abb",   "\\d{4}-\\d\\d", "[^\\\\\"]+",
    "(?:x{2,3}|y?)+z",   "\\p{L}+\\s?", "a{0,1000}",     "[\\u00e9-\\u00ff]|\\w",
};
const std::vector<std::string> kGrammars = {
    "root ::= e\ne ::= e \"+\" e | [0-9]+",
    "root ::= item{1,3} tail?\nitem ::= \"a\" | \"b\" root \"c\"\ntail ::= Regex(\"x+\")",
    "root ::= (\"<\" [a-z]* \">\")+ # comment\n",
};

class Fuzzer {
 public:
  explicit Fuzzer(std::uint64_t seed) : rng_(seed), vocab_(ag::test::vocabulary(true)) { renew(); }

  bool one() {
    if (++made_ % 512 == 0) renew();  // what was shared so far is dropped
    const SpecPtr spec = make();
    std::shared_ptr<const Grammar> grammar;
    const auto start = std::chrono::steady_clock::now();
    try {
      grammar = engine_->compile(spec);
    } catch (const GrammarError&) {
      ++refused_;
    } catch (const ValueError&) {
      ++refused_;
    }
    bool right = true;
    try {
      right = !grammar || walk(grammar);
    } catch (const GrammarError&) {  // a limit that shows while states are made
      ++stopped_;
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (seconds > slowest_) slowest_ = seconds;
    if (seconds > kPatience || !right) {
      std::printf("%s after %.1f s:\n%s\n", right ? "too slow" : "wrong", seconds, last_.c_str());
      return false;
    }
    return true;
  }

  void report() const {
    std::printf("%zu inputs, %zu refused, %zu stopped at a limit, slowest %.2f s\n", made_, refused_, stopped_,
                slowest_);
  }

 private:
  static constexpr double kPatience = 60;

  void renew() {
    EngineOptions options;
    options.cache_bytes = 1 << 20;
    options.limits.max_nodes = 20'000;
    options.limits.max_dfa_states = 5'000;
    engine_ = std::make_shared<EngineCore>(vocab_, options);
  }

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(rng_() % n); }

  std::string mutate(std::string text, const std::vector<std::string>& others) {
    for (std::size_t k = below(4); k > 0; --k) {
      const std::size_t at = text.empty() ? 0 : below(text.size());
      switch (below(5)) {
        case 0:
          text.erase(at, 1 + below(6));
          break;
        case 1:
          text.insert(at, 1, static_cast<char>(below(256)));
          break;
        case 2: {
          const std::string& other = others[below(others.size())];
          const std::size_t from = below(other.size());
          text.insert(at, other.substr(from, 1 + below(24)));
          break;
        }
        case 3: {
          static const std::string kBits = "{}[]()|*+?\\\"':,0123456789^$.-<>ux";
          if (!text.empty()) text[at] = kBits[below(kBits.size())];
          break;
        }
        default:
          text.insert(at, text.substr(at, 1 + below(8)));
      }
    }
    return text;
  }

  SpecPtr make() {
    switch (below(5)) {
      case 0:
        last_ = mutate(kPatterns[below(kPatterns.size())], kPatterns);
        return ag::test::node(Spec::kRegex, last_);
      case 1:
        last_ = mutate(kGrammars[below(kGrammars.size())], kGrammars);
        return ag::test::node(Spec::kEbnf, last_);
      case 2: {
        last_ = mutate(kSchemas[below(kSchemas.size())], kSchemas);
        const std::string begin = mutate("<f=name>", kPatterns);
        return ag::test::dispatch({ag::test::tag(begin, ag::test::schema(last_), "</f>"),
                                   ag::test::tag("<f=a>", ag::test::schema("true"), "")},
                                  "<f=");
      }
      default:
        last_ = mutate(kSchemas[below(kSchemas.size())], kSchemas);
        return ag::test::schema(last_, below(2) != 0);
    }
  }

  // Random tokens, allowed ones for the most part; ids that are none among them.
  bool walk(const std::shared_ptr<const Grammar>& grammar) {
    Matcher m(grammar);
    std::vector<std::uint32_t> row(vocab_->words()), walked(vocab_->words());
    for (int step = 0; step < 12; ++step) {
      m.fill(row.data());
      if (below(4) == 0) {
        m.fill_by_walk(walked.data());
        if (row != walked) return false;
        for (int again = 0; again < 2; ++again) {  // from what was kept
          m.fork().fill(row.data());
          if (row != walked) return false;
        }
      }
      std::vector<std::uint32_t> allowed;
      for (std::uint32_t t = 0; t < vocab_->size(); ++t)
        if (row[t / 32] >> (t % 32) & 1) allowed.push_back(t);
      if (allowed.empty()) return m.ended();  // a dead end
      const auto any = static_cast<std::uint32_t>(below(vocab_->size() + 40));
      const bool bit = any < vocab_->size() && (row[any / 32] >> (any % 32) & 1);
      Matcher fork = m.fork();
      if (fork.accept(any) != bit) return false;
      if (below(6) == 0 && m.depth()) m.rollback(1 + below(m.depth()));
      m.fill(row.data());
      allowed.clear();
      for (std::uint32_t t = 0; t < vocab_->size(); ++t)
        if (row[t / 32] >> (t % 32) & 1) allowed.push_back(t);
      if (allowed.empty()) return m.ended();
      if (!m.accept(allowed[below(allowed.size())])) return false;
    }
    m.forced_bytes();
    const Ending ending = m.shortest_end();
    if (m.ended()) return true;
    for (const auto& unit : ending.units) {
      if (unit.token ? !m.accept(unit.value) : !m.accept_bytes(std::string(1, static_cast<char>(unit.value))))
        return false;
    }
    return m.can_end();
  }

  std::mt19937_64 rng_;
  std::shared_ptr<const Vocabulary> vocab_;
  std::shared_ptr<EngineCore> engine_;
  std::string last_;
  std::size_t made_ = 0, refused_ = 0, stopped_ = 0;
  double slowest_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const long count = argc > 1 ? std::atol(argv[1]) : 20'000;
  Fuzzer fuzzer(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  for (long i = 0; i < count; ++i) {
    if (!fuzzer.one()) return 1;
  }
  fuzzer.report();
  return 0;
}
