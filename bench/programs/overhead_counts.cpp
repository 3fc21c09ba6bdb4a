// SPDX-License-Identifier: Apache-2.0
// needs: prometheus tensorboard
// Runs one loop for a number of steps and counts allocations of every library in the process, and
// operators that LibTorch dispatched. callgrind counts the instructions of the same program without
// --operators. overhead.py subtracts two step counts, which cancels the start-up.
#include <ATen/record_function.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "../rivals.hpp"

namespace {

std::atomic<unsigned long long> allocations{0};
long clock_divisor = 1;

}  // namespace

// Under callgrind a step takes about a hundred times as long, so work at an interval of seconds
// would be counted a hundred times too often. --slow-clock slows the clock by the same factor; like
// malloc below, this definition takes precedence over the C library's.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  int const result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME) && clock_divisor != 1) {
    constexpr long second = 1'000'000'000;
    long const slow = (time->tv_sec * second + time->tv_nsec) / clock_divisor;
    *time = {.tv_sec = slow / second, .tv_nsec = slow % second};
  }
  return result;
}

// The program's own malloc takes precedence for every library, so this counts their allocations
// too; glibc exports the originals under these names.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : 12;  // ENOMEM
}
}

// An empty recipe stores the two numbers of Validate, its cadence and its SanityBatches, which may be set when the
// program runs. Its other policies and states are empty, and do not enlarge a class that contains them.
namespace {

namespace fr = frugal;

using Empty = fr::Trainer<frugal_bench::Net, fr::CrossEntropy>;

template <class List>
struct engine_of;
template <class... Ps>
struct engine_of<fr::list<Ps...>> {
  using type = typename fr::Context<frugal_bench::Net, Ps...>::engine;
};
using EmptyEngine = engine_of<Empty::policies>::type;

struct Bare {
  long long number;
};
struct WithEngine {
  long long number;
  [[no_unique_address]] EmptyEngine engine;
};

constexpr std::size_t added_bytes = sizeof(WithEngine) - sizeof(Bare);
static_assert(added_bytes <= 16);

}  // namespace

int main(int argc, char** argv) {
  std::string name = "none";
  std::string loop = "frugal";
  std::string log = "/dev/null";
  std::uint64_t steps = 100;
  std::int64_t batch = 32;
  bool count_operators = false;
  CLI::App app("Counts what a training loop does.");
  app.add_option("--recipe", name);
  app.add_option("--loop", loop)->check(CLI::IsMember({"frugal", "rival"}));
  app.add_option("--steps", steps)->check(CLI::PositiveNumber);
  app.add_option("--batch", batch)->check(CLI::PositiveNumber);
  app.add_option("--log", log);
  app.add_option("--slow-clock", clock_divisor, "how much slower time passes")
      ->check(CLI::PositiveNumber);
  app.add_flag("--operators", count_operators, "count dispatched operators, which itself costs");
  CLI11_PARSE(app, argc, argv);
  frugal_bench::Recipe const* const recipe = frugal_bench::find(name);
  if (recipe == nullptr) {
    std::cerr << "There is no recipe '" << name << "'.\n";
    return 1;
  }

  at::set_num_threads(1);
  auto source = frugal_bench::make_source(batch);
  auto valid = frugal_bench::make_source(batch, 10 * batch);
  static std::atomic<unsigned long long> operators{0};
  if (count_operators) {
    at::addGlobalCallback(at::RecordFunctionCallback([](at::RecordFunction const&)
                                                         -> std::unique_ptr<at::ObserverContext> {
                            operators.fetch_add(1, std::memory_order_relaxed);
                            return nullptr;
                          }).scopes({at::RecordScope::FUNCTION}));
  }
  unsigned long long const before = allocations;
  (loop == "frugal" ? recipe->by_frugal : recipe->by_hand)({source, valid, steps, log});
  std::cout << nlohmann::json{{"steps", steps},
                              {"allocations", allocations - before},
                              {"operators", operators.load()},
                              {"added_bytes", added_bytes}}
            << '\n';
}
