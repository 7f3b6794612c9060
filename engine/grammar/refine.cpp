// Valmari and Lehtinen, Efficient minimization of DFAs with partial transition functions (2008): O(m log n).
//
// Nodes are split by the edges that lead into a class at one position; edges are split by the class that they lead to.
// Each split costs what is in its smaller half.
#include "grammar/refine.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ag {

namespace {

// Elements in sets that are split again and again.
class Partition {
 public:
  // Elements by set, numbered from 0 on without gaps.
  explicit Partition(const std::vector<std::uint32_t>& sets) : set_(sets), order_(sets.size()), at_(sets.size()) {
    const std::uint32_t count = sets.empty() ? 0 : *std::max_element(sets.begin(), sets.end()) + 1;
    std::iota(order_.begin(), order_.end(), 0u);
    std::stable_sort(order_.begin(), order_.end(), [&](auto a, auto b) { return sets[a] < sets[b]; });
    bounds_.resize(count);
    for (std::uint32_t i = 0; i < order_.size(); ++i) {
      at_[order_[i]] = i;
      Bounds& b = bounds_[sets[order_[i]]];
      if (b.end == 0) b.begin = i;
      b.end = i + 1;
    }
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(bounds_.size()); }
  const std::vector<std::uint32_t>& sets() const { return set_; }
  std::vector<std::uint32_t> elements(std::uint32_t set) const {
    return {order_.begin() + bounds_[set].begin, order_.begin() + bounds_[set].end};
  }

  // Marked elements stand first in their set, once each.
  void mark(std::uint32_t element) {
    Bounds& b = bounds_[set_[element]];
    const std::uint32_t to = b.begin + b.marked;
    if (at_[element] < to) return;
    const std::uint32_t other = order_[to], from = at_[element];
    order_[from] = other;
    at_[other] = from;
    order_[to] = element;
    at_[element] = to;
    if (b.marked++ == 0) touched_.push_back(set_[element]);
  }

  // Sets with marks become two, unless all is marked; the smaller half is the new one.
  void split() {
    for (const std::uint32_t set : touched_) {
      const Bounds old = bounds_[set];
      bounds_[set].marked = 0;
      const std::uint32_t middle = old.begin + old.marked;
      if (middle == old.end) continue;
      const bool marked_is_new = old.marked <= old.end - middle;
      const Bounds fresh = marked_is_new ? Bounds{old.begin, middle, 0} : Bounds{middle, old.end, 0};
      bounds_[set] = marked_is_new ? Bounds{middle, old.end, 0} : Bounds{old.begin, middle, 0};
      for (std::uint32_t i = fresh.begin; i < fresh.end; ++i) set_[order_[i]] = count();
      bounds_.push_back(fresh);
    }
    touched_.clear();
  }

 private:
  struct Bounds {
    std::uint32_t begin = 0, end = 0, marked = 0;
  };
  std::vector<std::uint32_t> set_, order_,
      at_;  // of an element: its set; by place: the element; of an element: its place
  std::vector<Bounds> bounds_;
  std::vector<std::uint32_t> touched_;
};

}  // namespace

std::vector<std::uint32_t> refine(const std::vector<std::uint32_t>& classes,
                                  const std::vector<std::vector<std::uint32_t>>& successors) {
  std::vector<std::uint32_t> from, positions;  // of each edge
  std::vector<std::vector<std::uint32_t>> into(successors.size());
  for (std::uint32_t node = 0; node < successors.size(); ++node) {
    for (std::uint32_t position = 0; position < successors[node].size(); ++position) {
      into[successors[node][position]].push_back(static_cast<std::uint32_t>(from.size()));
      from.push_back(node);
      positions.push_back(position);
    }
  }
  Partition nodes(classes), edges(positions);
  std::uint32_t nodes_done = 0;
  for (std::uint32_t set = 0; set < edges.count() || nodes_done < nodes.count();) {
    // Edges first lead to one class each, then tell their sources apart.
    for (; nodes_done < nodes.count(); ++nodes_done) {
      for (const std::uint32_t node : nodes.elements(nodes_done)) {
        for (const std::uint32_t edge : into[node]) edges.mark(edge);
      }
      edges.split();
    }
    if (set >= edges.count()) break;
    for (const std::uint32_t edge : edges.elements(set++)) nodes.mark(from[edge]);
    nodes.split();
  }
  return nodes.sets();
}

}  // namespace ag
