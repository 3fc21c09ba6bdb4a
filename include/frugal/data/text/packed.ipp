// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/text/packed.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE at::Tensor document_mask(at::Tensor const& documents, bool causal) {
  at::Tensor mask = documents.unsqueeze(-1).eq(documents.unsqueeze(-2));
  if (causal) mask = mask.tril();
  return mask.unsqueeze(-3);
}

}  // namespace frugal
