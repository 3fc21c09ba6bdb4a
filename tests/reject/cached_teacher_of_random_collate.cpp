// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: CachedTeacher needs batches that are the same in every epoch, and this collate function draws by seed and epoch. Keep several variants with offline(set, augment, settings), or ask the teacher live.
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
struct Draws {
  Batch operator()(Batch batch, std::span<SampleKey const>) const { return batch; }
};

template <class Collate>
constexpr bool takes = sizeof(CachedTeacher<Rows, Collate>) > 0;
static_assert(takes<Stack>);
#ifdef FRUGAL_REJECT
static_assert(takes<CollateThen<Stack, Draws>>);
#endif
