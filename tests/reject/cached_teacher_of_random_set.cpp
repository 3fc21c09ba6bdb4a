// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: CachedTeacher needs samples that are the same in every epoch, and this set draws them by seed and epoch. Keep several variants with offline(set, augment, settings), whose draws are in the key, or ask the teacher live.
#include <frugal/data/collate_then.hpp>
#include <frugal/model/cached_teacher.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

using namespace frugal;

struct Rows {
  std::uint64_t size() const { return 4; }
  Batch get(std::uint64_t) const { return {}; }
  std::string identity() const { return "rows"; }
};
struct Drawn : Rows {
  Batch get(SampleKey const&) const { return {}; }
};

template <class Set>
constexpr bool takes = sizeof(CachedTeacher<Set>) > 0;
static_assert(takes<Rows>);
#ifdef FRUGAL_REJECT
static_assert(takes<Drawn>);
#endif
