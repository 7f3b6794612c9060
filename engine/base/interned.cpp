#include "base/interned.h"

#include "base/hash.h"

namespace ag {

void Interned::release() const {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  static thread_local const Interned* dead = nullptr;
  static thread_local bool busy = false;
  next_dead_ = std::exchange(dead, this);
  if (busy) return;  // further up this stack one is being destroyed
  busy = true;
  while (dead) {
    const Interned* next = std::exchange(dead, dead->next_dead_);
    next->interner_.forget(*next);
    delete next;
  }
  busy = false;
}

bool Interned::try_add_ref() const {
  std::uint32_t refs = refs_.load(std::memory_order_relaxed);
  while (refs && !refs_.compare_exchange_weak(refs, refs + 1, std::memory_order_relaxed)) {
  }
  return refs != 0;
}

std::uint64_t Interner::hash(Description description) { return hash_numbers(description); }

Interner::Found Interner::find(std::uint64_t hash, Description description) {
  const std::lock_guard lock(mutex_);
  Found out = look(hash & mask_, description);
  if (out.object) ++stats_.found;
  return out;
}

// What is being destroyed stays whole until it is forgotten, which waits for the mutex; it is not given away again.
Interner::Found Interner::look(std::uint64_t hash, Description description) {
  for (const Place* p = head(hash); p; p = p->next) {
    if (p->hash != hash || p == &p->of->named_ || !p->of->has(p->way, description) || !p->of->try_add_ref()) continue;
    return {Ref<const Interned>::adopt(p->of), p->way};
  }
  return {};
}

Ref<const Interned> Interner::publish(Interned& fresh, Description description, std::span<const Way> ways) {
  const std::lock_guard lock(mutex_);
  if (Found other = look(ways[0].second & mask_, description); other.object) return std::move(other.object);
  insert(fresh.first_, fresh, ways[0].first, ways[0].second);
  fresh.more_.resize(ways.size() - 1);
  for (std::size_t i = 1; i < ways.size(); ++i) insert(fresh.more_[i - 1], fresh, ways[i].first, ways[i].second);
  stats_.bytes += fresh.bytes();
  stats_.things += fresh.things();
  return Ref<const Interned>(&fresh);
}

void Interner::name(const Interned& thing, std::uint32_t way, std::uint64_t name) {
  const std::lock_guard lock(mutex_);
  auto& named = const_cast<Interned&>(thing);
  if (named.named_.of) return;
  named.name_ = name;
  insert(named.named_, thing, way, hash({&name, 1}));
}

Interner::Found Interner::find_named(std::uint64_t name) {
  const std::uint64_t h = hash({&name, 1}) & mask_;
  const std::lock_guard lock(mutex_);
  for (const Place* p = head(h); p; p = p->next) {
    if (p != &p->of->named_ || p->of->name_ != name || !p->of->try_add_ref()) continue;
    ++stats_.found;
    return {Ref<const Interned>::adopt(p->of), p->way};
  }
  return {};
}

void Interner::insert(Place& place, const Interned& thing, std::uint32_t way, std::uint64_t hash) {
  if (++placed_ > heads_.size()) grow();
  place = {&thing, nullptr, hash & mask_, way};
  place.next = std::exchange(head(place.hash), &place);
}

void Interner::remove(const Place& place) {
  Place** at = &head(place.hash);
  while (*at != &place) at = &(*at)->next;
  *at = place.next;
  --placed_;
}

void Interner::grow() {
  std::vector<Place*> old(heads_.size() * 2);
  old.swap(heads_);
  for (Place* p : old) {
    while (p) {
      Place* place = std::exchange(p, p->next);
      Place*& first = head(place->hash);
      place->next = std::exchange(first, place);
    }
  }
}

void Interner::forget(const Interned& dead) {
  const std::lock_guard lock(mutex_);
  if (!dead.first_.of) return;  // never published
  remove(dead.first_);
  for (const Place& place : dead.more_) remove(place);
  if (dead.named_.of) remove(dead.named_);
  stats_.bytes -= dead.bytes();
  stats_.things -= dead.things();
}

Interner::Stats Interner::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace ag
