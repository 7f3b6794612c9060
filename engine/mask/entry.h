// Adaptive token masks (XGrammar-2): what is known of every token at one state of one terminal, whatever follows it.
//
// accepted   consumed wholly inside the terminal; by reachable labels where the terminal has labels
// leaves     the terminal ends inside the token and the next byte leaves it; by the rest of the token
// ambiguous  refused by the terminal, but it could have ended earlier than at the last possible byte; decided at run
//            time, and only where what follows begins with a byte on which the terminal could have gone on
// All other tokens are refused.
//
// What follows a terminal is a terminal again, and the rests of the tokens that end the first are a small vocabulary
// for it: so an entry may also be over the rests of another entry's leaves. A mask is put together from such entries,
// one for each terminal that a token crosses, and none of them depends on the rules around it.
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "mask/slices.h"
#include "regular/terminal.h"
#include "vocab/vocabulary.h"

namespace ag {

// Units that are left and due, clipped to the longest token: entries do not depend on the bounds (repetition
// compression).
struct CounterClass {
  std::uint32_t room = 0;  // how many more units may come
  std::uint32_t need = 0;  // how many must come before the terminal may end
  bool operator==(const CounterClass&) const = default;
};

// What is left of tokens, with their ids: a trie of their own where several parts of the vocabulary are merged, or parts
// of the vocabulary's trie as they stand.
struct Rests {
  // Subtrees [from, until) of equal depth below a path of `depth` bytes, which is no part of the rest; or one subtree
  // whose root is the path's end, so that nothing is left of the root's own tokens.
  struct Piece {
    std::uint32_t from, until, depth;
    std::uint32_t parent;  // of those below the path; kUnknown where nobody looked
  };
  static constexpr std::uint32_t kUnknown = ~0u;
  // What is left of the tokens below a node of the vocabulary's trie, when they have taken what leads to it. One whole
  // subtree is its own name, for all who come to it.
  static Rests below(const ByteTrie& all, std::uint32_t node) {
    Rests out;
    out.id = kSubtree | node;
    out.pieces.push_back({node, all.skip(node), all.depth(node), kUnknown});
    return out;
  }
  static constexpr std::uint64_t kSubtree = std::uint64_t{1} << 63;

  std::uint64_t id = 0;  // equal only for equal rests
  ByteTrie trie;
  std::vector<Piece> pieces;
  std::size_t memory() const { return trie.memory() + pieces.capacity() * sizeof(Piece); }
};

struct Entry : std::enable_shared_from_this<Entry> {
  struct Accepted {
    Terminal::Range range;            // labels that are left after the token
    std::uint32_t from, until;        // of `ids`
    std::vector<std::uint32_t> bits;  // words(), where they are many; or empty
  };
  struct Ends {  // what is left of the tokens that end the terminal
    Rests rests;
    // Only where the terminal may be an object's key, and is no set of names:
    struct Key {  // that a token ends: which part of its bytes, and what it says
      std::uint32_t id, from, size;
      std::string says;
    };
    std::vector<Key> keys;  // over the vocabulary: spelled with escapes; over rests: all; sorted by what they say
    // Tokens whose rests may hold a whole key of their own, which is not to be the one that the token ended: they are in
    // neither of these, but decided one by one. Over the vocabulary; and over rests, with what the terminal was given.
    std::vector<std::uint32_t> apart;
    // The same where no key can be meant, as no colon follows: items of an array.
    std::vector<std::uint32_t> apart_items;
    Rests whole;
    std::size_t memory() const;
  };
  struct Leaves {
    std::uint32_t label;
    Ends own;  // unless other entries have the same
    std::shared_ptr<const Ends> shared;
    const Ends* operator->() const { return shared ? shared.get() : &own; }
  };
  std::vector<Accepted> accepted;
  std::vector<std::uint32_t> ids;
  std::vector<Leaves> leaves;
  Rests ambiguous;          // whole tokens; pieces are of the vocabulary's trie, anywhere in it, in order
  std::bitset<256> inner;   // bytes on which the terminal went on where it could have ended
  std::uint32_t nodes = 0;  // trie nodes visited to build it
  bool alone = false;       // a mask from here needs no other entry, and no walk
  bool needs_others() const;
  std::size_t memory() const;
};

// States of many terminals are ended by the same tokens, after the same bytes: those of strings. What is left of these
// tokens is then one vocabulary, for all that may follow.
class SharedEnds {
 public:
  // What was made of these leaves, as the numbers say exactly, if it is still in use.
  std::shared_ptr<const Entry::Ends> find(const std::vector<std::uint32_t>& leaves) const;
  // Gives what another thread has added first, or what is given.
  std::shared_ptr<const Entry::Ends> add(std::vector<std::uint32_t> leaves, Entry::Ends&& made);
  std::size_t bytes() const { return *bytes_; }

 private:
  struct Known {
    std::vector<std::uint32_t> leaves;
    std::weak_ptr<const Entry::Ends> ends;
  };
  mutable std::mutex mutex_;
  std::unordered_multimap<std::size_t, Known> known_;  // by the hash of the leaves
  std::size_t sweep_at_ = 64;
  std::shared_ptr<std::atomic<std::size_t>> bytes_ = std::make_shared<std::atomic<std::size_t>>(0);  // in use
};

// Over the given rests, or over the whole vocabulary where there are none.
std::shared_ptr<const Entry> build_entry(const Vocabulary& vocab, const Rests* rests, Slices& slices, SharedEnds& ends,
                                         Terminal& terminal, Terminal::State state, CounterClass counter);

}  // namespace ag
