// Whole masks of configurations that come again (XGrammar-2, cross-grammar cache: the same state with the same
// continuation), of one thread.
//
// A mask depends on what the configuration's items are, and on those callers whose links were followed while it was put
// together. Both are written down as numbers that are never given twice (of terminals and rules), so that equal
// descriptions mean equal masks, whichever request they come from; nothing here points into a grammar.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "mask/cache.h"
#include "mask/rows.h"
#include "parser/parser.h"

namespace ag {

class Memo {
 public:
  struct Hit {
    bool found = false;
    std::uint32_t entries = 0;
  };
  // Writes the mask where it is known.
  Hit find(MaskCache& cache, const ConfigView& config, std::uint32_t* row);
  // Keeps the mask of the configuration that was just looked for. `reads`: what the parser followed meanwhile.
  void keep(MaskCache& cache, const ConfigView& config, const Steps& steps, std::uint32_t entries,
            const Parser::Reads& reads);
  ~Memo();

 private:
  struct Slot {
    std::vector<std::uint64_t> key;
    std::vector<std::uint32_t> followed;  // nodes, by when they were first named
    Steps steps;
    std::uint32_t hits = 0;
    std::shared_ptr<const KeptRow> row;                  // in place of steps that took long, often
    std::uint32_t items = 0, entries = 0;                // of key: the items' part
    bool whole = false;                                  // nothing but that payloads have to be told whole here
    std::shared_ptr<std::atomic<std::size_t>> held_for;  // the cache's count of bytes
    std::size_t held = 0;                                // these are counted there
    std::size_t bytes() const { return key.capacity() * 8 + followed.capacity() * 4 + steps.bytes(); }
    void clear();
    void count();  // its bytes, there
  };
  // No id, no length of a text.
  static constexpr std::uint64_t kOutlook = Rule::kDescribed - 1, kEnd = ~std::uint64_t{0};
  static constexpr std::size_t kWays = 4, kSets = 512, kMostItems = 8, kMostKey = 128, kMostNodes = 32,
                               kMostSteps = 1024, kOften = 16, kLong = 128;

  // By what their rules say of payloads (Rule::outlook), or by whole payloads: `outlook_`.
  bool describe(MaskCache& cache, const ConfigView& config);
  bool describe(MaskCache& cache, const Item& item);
  bool describe(const Node& node);
  bool whole(const Rule& rule, std::uint32_t state, const Payload& payload);
  bool by_outlook(const Rule& rule, std::uint32_t state, const Payload& payload, const Rule::Ahead& ahead);
  bool taken(MaskCache& cache, const Item& item);
  bool locate(MaskCache& cache, const ConfigView& config);
  bool complete(const Parser::Reads& reads);
  bool text(const char* bytes, std::size_t size);
  std::uint64_t index(const Node* node);
  void put(std::uint64_t value) { key_.push_back(value); }

  struct Set {                                // of kWays slots, what is looked at first
    std::array<std::uint64_t, kWays> hash{};  // of the description's beginning, the items; 0: empty
    std::array<std::uint64_t, kWays> used{};  // when
  };
  void stamp() { set_->used[way_] = ++uses_; }

  KeptRows rows_;
  std::vector<Set> sets_;  // once something was asked
  std::vector<Slot> slots_;
  Set* set_ = nullptr;  // of the last question
  std::size_t way_ = 0;
  Slot* slot_ = nullptr;
  std::uint64_t hash_ = 0, uses_ = 0;
  std::vector<std::uint64_t> key_;
  std::vector<const Node*> nodes_;          // that the description names, in this order
  std::size_t items_ = 0, item_nodes_ = 0;  // how much of both is of the items
  std::vector<std::uint32_t> followed_;
  std::vector<std::string_view> taken_;
  bool outlook_ = true;  // use outlooks
  bool used_ = false;    // some was
};

}  // namespace ag
