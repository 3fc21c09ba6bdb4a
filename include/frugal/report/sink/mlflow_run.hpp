// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace frugal {

/// What a fit has sent to MLflow.
struct MlflowSent {
  std::string run_id{};         ///< of the run there; empty: there is none
  std::uint64_t points = 0;     ///< values that the server has taken
  std::uint64_t dropped = 0;    ///< values that it has not, and that nobody will send again
  std::uint64_t waiting = 0;    ///< values that waited when the fit ended
  std::string first_failure{};  ///< what the server, or the connection to it, said first
};

}  // namespace frugal

namespace frugal::detail {

/// The answer to a request. `status` 0: there is none, and `failure` says why.
struct MlflowAnswer {
  int status = 0;
  std::string body{};
  std::string failure{};
};

/// A value of a metric.
struct MlflowPoint {
  std::string key{};
  double value = 0;
  std::int64_t time_ms = 0;  ///< since 1970
  std::uint64_t step = 0;

  friend bool operator==(MlflowPoint const&, MlflowPoint const&) = default;
};

using MlflowWords = std::vector<std::pair<std::string, std::string>>;

/// What a run is at MLflow.
struct MlflowPlan {
  std::string experiment{};
  std::string run_name{};  ///< empty: the server makes one up
  std::string mark{};      ///< the tag by which a resumed run finds itself
  MlflowWords params{}, tags{};
  bool resumed = false;              ///< the server may have the run
  std::uint64_t step = 0;            ///< at which the run begins
  std::int64_t since_ms = 0;         ///< what is older is no repetition: a Rollback was after it
  std::vector<MlflowPoint> saved{};  ///< those that a checkpoint had, and the server had not
  std::size_t most_waiting = 100000;
  std::chrono::milliseconds first_wait{500};      ///< before a request is made again; then doubled,
  std::chrono::milliseconds longest_wait{30000};  ///< up to this
  std::chrono::milliseconds at_end{10000};        ///< for what still waits when the fit ends
};

/// The name of a metric or parameter as MLflow takes it. What it refuses becomes "_", with a hash of the
/// name behind it, so that no two names become one.
std::string mlflow_name(std::string_view name);

/// A text of at most so many bytes of whole characters, which ends in "..." if it was longer.
std::string mlflow_text(std::string_view text, std::size_t most);

/// Points as lines, for a checkpoint, and back. A line that is damaged is left out.
std::string text_of_points(std::vector<MlflowPoint> const& points);
std::vector<MlflowPoint> points_of_text(std::string_view text);

/// Sends a run to an MLflow server from a thread of its own, in the order of the calls. A request that
/// fails is made again after a growing pause; one that the server refuses is not.
///
/// Errors  none: failures are counted, and told by `news`.
/// Source  https://mlflow.org/docs/latest/api_reference/rest-api.html
class MlflowRun {
 public:
  /// Makes one request: "GET" or "POST", a path behind "/api/2.0/mlflow/", a body. Returns soon after a
  /// stop is requested.
  using Call = std::function<MlflowAnswer(std::string const& method, std::string const& path,
                                          std::string const& body, std::stop_token const&)>;

  MlflowRun(Call call, MlflowPlan plan);
  MlflowRun(MlflowRun const&) = delete;
  MlflowRun& operator=(MlflowRun const&) = delete;
  ~MlflowRun() { end({}); }

  /// False if there is no room for them: they are dropped, and counted.
  bool post(std::vector<MlflowPoint> points);
  void tag(std::string name, std::string text);

  /// What the server has not confirmed, for a checkpoint.
  std::vector<MlflowPoint> waiting() const;

  /// What a person should learn, each kind of failure once. What is returned is not returned again.
  std::vector<std::string> news();

  MlflowSent sent() const;

  /// Sends what waits and the status, FINISHED, FAILED or KILLED, for at most `at_end`.
  MlflowSent finish(std::string status);

 private:
  struct Failure {
    bool again = false;  ///< it may succeed later
    int status = 0;
    std::string why{};
  };

  void work();
  /// Makes the next request, or some. Throws a Failure.
  void advance();
  void find_experiment();
  void find_run();
  void create_run();
  /// What the server has of the stretch that a resumed run repeats.
  void find_repeated(Json const& run);
  void send_params();
  void send_points();
  void send_status();
  Json ask(std::string const& method, std::string const& path, std::string const& body);
  void failed(Failure const& failure);
  void tell(bool& told, std::string const& text);
  void end(std::chrono::steady_clock::time_point deadline);
  bool has_work() const;

  Call call_;
  MlflowPlan plan_;

  // Of the thread alone.
  std::string experiment_id_;
  bool may_exist_;         ///< a run of this mark, at the server
  std::size_t param_ = 0;  ///< the first that is not sent
  std::map<std::pair<std::string, std::uint64_t>, int> repeated_;

  mutable std::mutex mutex_;  ///< of all below
  std::condition_variable changed_;
  std::deque<MlflowPoint> waiting_;
  std::vector<MlflowPoint> batch_;  ///< those in the request that is under way
  MlflowWords tags_;                ///< to be sent with the next points
  MlflowSent sent_;
  std::vector<std::string> news_;
  bool told_unreachable_ = false, told_refused_ = false, told_full_ = false;
  bool connected_ = false;  ///< the run and its parameters are there
  bool refused_ = false;    ///< the run cannot be made: nothing more is sent
  bool closing_ = false, hurry_ = false, done_ = false;
  std::string status_;  ///< at the end, until it is sent

  std::stop_source stop_;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/sink/mlflow_run.ipp>
#endif
