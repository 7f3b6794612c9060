// A counted reference to an object that holds its own count: one pointer, one allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace ag {

// T has add_ref() and release(), the latter giving the object back when nobody is left.
template <class T>
class Ref {
 public:
  Ref() = default;
  static Ref adopt(T* object) {  // takes over the first reference
    Ref out;
    out.object_ = object;
    return out;
  }
  explicit Ref(T* object) : object_(object) {
    if (object_) object_->add_ref();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) object_->release();
  }
  T* leak() { return std::exchange(object_, nullptr); }  // the caller owns the reference then
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_; }
  bool operator==(const Ref&) const = default;

 private:
  T* object_ = nullptr;
};

}  // namespace ag
