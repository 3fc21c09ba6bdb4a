// SPDX-License-Identifier: Apache-2.0
#include <frugal/policy/notices.hpp>
#include <frugal/policy/spot/clouds.hpp>

#include <iostream>

// Nothing listens on port 9 (discard) of this machine; this tests that it links and runs.
int main() {
  frugal::NoticePoller<frugal::Gcp> poller({.base = "http://127.0.0.1:9"});
  std::cout << "pending: " << poller.pending() << '\n';
  return poller.pending() ? 1 : 0;
}
