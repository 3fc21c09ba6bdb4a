// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/text/packing.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::string Packing::text() const {
  return "length " + std::to_string(length) + ", pack " + std::to_string(static_cast<int>(pack)) +
         ", longer " + std::to_string(static_cast<int>(longer)) + ", end " +
         (end_of_document ? std::to_string(*end_of_document) : "none") + ", padding " +
         std::to_string(padding) + ", drop_last " + std::to_string(drop_last ? 1 : 0);
}

FRUGAL_INLINE double PackIndex::padding_share() const {
  auto const all = static_cast<double>(size()) * static_cast<double>(packing_.length);
  return size() == 0 ? 0.0 : static_cast<double>(padding()) / all;
}

FRUGAL_INLINE std::uint64_t PackIndex::whole(std::uint64_t length) {
  if (length == 0) ++empty_;
  return length == 0 ? 0 : length + (packing_.end_of_document ? 1 : 0);
}

FRUGAL_INLINE void PackIndex::refuse(std::uint64_t document, std::uint64_t length) const {
  throw DataError({.what = "a document is longer than a sequence",
                   .where = "document " + std::to_string(document),
                   .why = "it has " + std::to_string(length) + " tokens" +
                          (packing_.end_of_document ? " with its end" : "") +
                          ", and a sequence has " + std::to_string(packing_.length),
                   .fix = "Set Packing::length higher, or Packing::longer to LongDocuments::Cut or "
                          "LongDocuments::LeaveOut."});
}

}  // namespace frugal
