// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Rollback copies its state between steps, not at epoch ends. Write Rollback<Every<100>>, or another cadence in steps, micro-batches, samples or tokens.
#include <frugal/policy/rollback.hpp>

frugal::Rollback<frugal::Every<100>> good;
#ifdef FRUGAL_REJECT
frugal::Rollback<frugal::Every<1, frugal::Epoch>> bad;
#endif
