// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/importance/pass.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

#include <string>

namespace frugal {

FRUGAL_INLINE void ImportancePass::seek(Cursor const& cursor) {
  pass_.seek(cursor);
  cursor_ = cursor;
  table_->begin(cursor.epoch);
}

FRUGAL_INLINE void ImportancePass::identify(DataIdentity& to) const {
  pass_.identify(to, "ImportancePass", true);
  to.add("uniform", detail::fixed(table_->uniform(), 6));
}

FRUGAL_INLINE LoaderOptions ImportancePass::unshuffled(LoaderOptions loading) {
  loading.shuffle = false;
  return loading;
}

}  // namespace frugal
