// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/core/run/surprises.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/recipe_name.hpp>
#include <frugal/report/notify/http.hpp>
#include <frugal/report/sink/mlflow_run.hpp>
#include <frugal/report/sink/record.hpp>
#include <frugal/report/sink/state.hpp>
#include <frugal/version.hpp>

// Needs libcurl: FRUGAL_NOTICES=ON, and the target frugal::notices.

namespace frugal::kinds {

struct mlflow : optional_kind {
  static constexpr std::string_view name = "Mlflow";
  static constexpr std::string_view page = "report/mlflow.md";
  static constexpr bool once_per_run = true;
  static constexpr Stage stage = Stage::publish;
};

}  // namespace frugal::kinds

namespace frugal {

/// Who sends to an MLflow server. A text that is empty comes from the environment. It is no setting of
/// apply(), whose settings are in logs and checkpoints.
struct MlflowLogin {
  std::string token{};  ///< empty: MLFLOW_TRACKING_TOKEN
  std::string
      user{};  ///< empty: MLFLOW_TRACKING_USERNAME; with a password it comes before the token
  std::string password{};  ///< empty: MLFLOW_TRACKING_PASSWORD
};

namespace detail {

/// The requests of an MlflowRun, by HTTP.
class MlflowServer {
 public:
  MlflowServer(std::string uri, MlflowLogin login, std::chrono::milliseconds timeout);

  /// Without a name and a password in it, and without a path.
  std::string host() const;

  MlflowAnswer operator()(std::string const& method, std::string const& path,
                          std::string const& body, std::stop_token const& stop) const;

 private:
  std::string uri_;
  MlflowLogin login_;
  std::chrono::milliseconds timeout_;
  HttpClient client_;
};

class MlflowSink {
 public:
  static constexpr bool forgets = true;  // each begin sets the status that its end replaces

  template <class Policy>
  explicit MlflowSink(Policy const& policy)
      : uri_(policy.uri), login_(policy.login), timeout_(policy.timeout), sent_(&policy.sent) {
    plan_.experiment = policy.experiment;
    plan_.run_name = policy.run_name;
    plan_.tags = policy.tags;
    plan_.most_waiting = policy.most_waiting;
    plan_.at_end = policy.at_end;
  }

  void set_recipe(std::string text) { plan_.params.emplace_back("recipe", std::move(text)); }

  void open(FitBegin& phase);
  void write(MetricRecord const& record);
  /// Waits for what still has to be sent. The last checkpoint is on disk.
  void finish(FitRun& phase);
  /// Likewise, after an exception.
  void close();

  template <class Archive>
  void persist(Archive& archive, SinkMoment const& now) {
    std::string mark = plan_.mark;
    std::int64_t since = plan_.since_ms;
    std::string waiting;
    if (!Archive::loading && run_) waiting = text_of_points(run_->waiting());
    archive("run", mark);
    archive("since", since);
    archive("waiting", waiting);
    if (!Archive::loading) return;
    if (now.in_run) {
      // A Rollback: what it trains again has other values, and is no repetition.
      plan_.since_ms = static_cast<std::int64_t>(unix_time() * 1000);
      return;
    }
    saved_ = {.mark = mark, .since_ms = since, .waiting = waiting};
  }

 private:
  /// What a checkpoint has of the run that it resumes.
  struct Saved {
    std::string mark{};
    std::int64_t since_ms = 0;
    std::string waiting{};
  };

  void begin(MetricRecord const& record);
  /// Of the checkpoint of another run, which goes on in its own folder: it is another run there, too.
  bool is_fork() const;
  /// Ends the run at the server, and returns what a person should learn.
  std::vector<std::string> ended(std::string const& status);
  std::string told(std::string const& text) const {
    return "Mlflow, " + server_->host() + ": " + text;
  }
  void tell_news();

  std::string uri_;
  MlflowLogin login_;
  std::chrono::milliseconds timeout_;
  Outcome<MlflowSent> const* sent_;
  MlflowPlan plan_;
  Saved saved_;
  std::optional<Phase> phase_;
  std::unique_ptr<MlflowServer> server_;
  std::unique_ptr<MlflowRun> run_;
  std::string status_ = "FINISHED";
};

}  // namespace detail

/// Sends a run to an MLflow tracking server: its parameters, metrics and status.
///
/// Lever   none; the curves of a run where many teams look already.
/// Cost    at its cadence some values are put into a queue and, with the losses on a device, one host
///         sync. A thread sends them: no step waits for the network.
/// State   by which tag the server knows the run, and the values that it has not taken. A resumed run
///         goes on in the same MLflow run, and sends no value of a step twice.
/// Errors  SettingsError without an address. A server that cannot be reached, or refuses, is a warning,
///         once; what is lost is counted (`sent`). Neither ends or slows the run.
///
/// Metrics are "step/loss", "validation/accuracy", "epoch/loss", as in TensorBoard.
template <class Cadence = Every<100>>
struct Mlflow {
  static_assert(
      detail::option::cadence::has<Cadence>,
      "frugal: Mlflow<Cadence>: the option is a cadence, such as Every<100> or Every<1, Epoch>.");

  using kind = kinds::mlflow;
  using listens = concat<detail::sink_listens, list<around::fit>>;

  static constexpr About about{Term::none, "some values into a queue at its cadence"};

  Cadence every{};
  std::string uri{};                   ///< empty: MLFLOW_TRACKING_URI
  std::string experiment = "Default";  ///< made if the server has none of that name
  std::string run_name{};              ///< empty: Settings::name, or the name of Settings::run_dir
  detail::MlflowWords tags{};          ///< {{"team", "vision"}}
  MlflowLogin login{};                 ///< token, or user and password
  std::chrono::milliseconds timeout{30000};  ///< for one request
  std::chrono::milliseconds at_end{10000};   ///< for what still waits when the fit ends
  std::size_t most_waiting = 100000;         ///< values in the queue; more are dropped, and counted
  Outcome<MlflowSent> sent{};                ///< set by fit: what arrived at the server
  Outcome<SinkOutcome> outcome{};            ///< set by fit: records put into the queue, and lost

  template <class Context>
  class State : public detail::SinkState<Cadence, detail::MlflowSink> {
   public:
    explicit State(Mlflow const& settings)
        : detail::SinkState<Cadence, detail::MlflowSink>(settings) {
      this->sink().set_recipe(detail::written_recipe(typename Context::policies{}));
    }

    template <class Next>
    void around_fit(FitRun& phase, Next&& next) {
      next();
      this->guarded([&] { this->sink().finish(phase); });
    }
  };
};

}  // namespace frugal

// Not in an .ipp file: frugal::compiled has no libcurl.
namespace frugal::detail {

inline MlflowServer::MlflowServer(std::string uri, MlflowLogin login,
                                  std::chrono::milliseconds timeout)
    : uri_(std::move(uri)), login_(std::move(login)), timeout_(timeout) {
  auto const or_environment = [](std::string& text, char const* name) {
    if (char const* const value = std::getenv(name); text.empty() && value != nullptr) text = value;
  };
  or_environment(uri_, "MLFLOW_TRACKING_URI");
  or_environment(login_.token, "MLFLOW_TRACKING_TOKEN");
  or_environment(login_.user, "MLFLOW_TRACKING_USERNAME");
  or_environment(login_.password, "MLFLOW_TRACKING_PASSWORD");
  while (uri_.ends_with('/')) uri_.pop_back();
  auto const refuse = [](std::string what, std::string where, std::string why, std::string fix) {
    throw SettingsError({.what = std::move(what),
                         .where = std::move(where),
                         .why = std::move(why),
                         .fix = std::move(fix)});
  };
  if (uri_.empty()) {
    refuse("Mlflow has no server to send to", "Mlflow::uri",
           "neither it nor MLFLOW_TRACKING_URI is set",
           "Set one of them, as in \"http://localhost:5000\".");
  }
  if (!uri_.starts_with("http://") && !uri_.starts_with("https://")) {
    refuse("Mlflow cannot send to this address", host(),
           "it does not begin with http:// or https://",
           "Give the address of a tracking server: `mlflow server` serves a folder or a database.");
  }
  if (timeout_ <= std::chrono::milliseconds(0)) {
    refuse("the timeout of a request is " + std::to_string(timeout_.count()) + " ms",
           "Mlflow::timeout", "no answer would be in time",
           "Give more than 0 ms; 30 s is the default.");
  }
  if (login_.token.find_first_of("\r\n") != std::string::npos) {
    refuse("the token of Mlflow has several lines", "Mlflow::login", "it is part of one header",
           "Give the token without line breaks.");
  }
}

inline std::string MlflowServer::host() const {
  std::size_t const scheme = uri_.find("://");
  if (scheme == std::string::npos)
    return uri_.substr(0, uri_.find('@') == std::string::npos ? std::string::npos : 0);
  std::string authority =
      uri_.substr(scheme + 3, uri_.find_first_of("/?#", scheme + 3) - scheme - 3);
  if (std::size_t const at = authority.rfind('@'); at != std::string::npos)
    authority.erase(0, at + 1);
  return uri_.substr(0, scheme + 3) + authority;
}

inline MlflowAnswer MlflowServer::operator()(std::string const& method, std::string const& path,
                                             std::string const& body,
                                             std::stop_token const& stop) const {
  HttpRequest request{.method = method,
                      .url = uri_ + "/api/2.0/mlflow/" + path,
                      .body = body,
                      .timeout = timeout_,
                      .most_bytes = std::size_t{64} << 20U};
  if (!login_.user.empty() && !login_.password.empty()) {
    request.user = login_.user;
    request.password = login_.password;
  } else if (!login_.token.empty()) {
    request.headers.push_back("Authorization: Bearer " + login_.token);
  }
  HttpAnswer answer = client_(request, stop);
  return {.status = answer.status,
          .body = std::move(answer.body),
          .failure = std::move(answer.failure)};
}

inline void MlflowSink::open(FitBegin& phase) {
  sent_->clear();
  phase_ = phase;
  server_ = std::make_unique<MlflowServer>(uri_, login_, timeout_);
  Settings const& settings = phase.settings();
  if (plan_.run_name.empty()) plan_.run_name = settings.name;
  if (plan_.run_name.empty()) plan_.run_name = settings.run_dir.filename().string();
  plan_.params.emplace_back("device", settings.device.str());
  // Not of LibTorch's generators, which a run seeds: two runs would be one.
  std::random_device random;
  for (int i = 0; i < 2; ++i) plan_.mark += hex_of((std::uint64_t{random()} << 32U) | random());
}

inline bool MlflowSink::is_fork() const {
  std::filesystem::path const& own = phase_->settings().run_dir;
  if (!phase_->resumed_from() || own.empty()) return false;
  std::error_code ignored;
  auto const from = std::filesystem::weakly_canonical(phase_->resumed_from()->from, ignored);
  auto const way = from.lexically_relative(std::filesystem::weakly_canonical(own, ignored));
  return way.empty() || *way.begin() == "..";
}

inline void MlflowSink::begin(MetricRecord const& record) {
  for (auto const& [name, value] : record.fields) {
    auto const* const text = std::get_if<std::string>(&value);
    auto const number = MetricRecord::number_in(value);
    auto const* const count = std::get_if<std::uint64_t>(&value);
    plan_.params.emplace_back(mlflow_name(name), text != nullptr    ? *text
                                                 : count != nullptr ? std::to_string(*count)
                                                                    : shortest_text(*number));
  }
  plan_.tags.emplace_back("frugal.version", std::string(version));
  plan_.step = record.at.step;
  if (is_fork()) {
    plan_.tags.emplace_back("frugal.from", phase_->resumed_from()->from);
  } else if (!saved_.mark.empty()) {
    plan_.resumed = true;
    plan_.mark = saved_.mark;
    plan_.since_ms = saved_.since_ms;
    plan_.saved = points_of_text(saved_.waiting);
  }
  run_ = std::make_unique<MlflowRun>(
      [server = *server_](auto const&... request) { return server(request...); }, plan_);
}

inline void MlflowSink::write(MetricRecord const& record) {
  if (record.kind == RecordKind::begin) return begin(record);
  std::vector<MlflowPoint> points;
  auto const now = static_cast<std::int64_t>(unix_time() * 1000);
  for (auto const& [name, value] : record.fields) {
    if (auto const number = MetricRecord::number_in(value)) {
      points.push_back({mlflow_name(record.name + "/" + name), *number, now, record.at.step});
    }
  }
  bool const has_room = points.empty() || run_->post(std::move(points));
  if (record.kind == RecordKind::end) {
    status_ = record.preempted ? "KILLED" : "FINISHED";
    run_->tag("frugal.stopped_by", std::string(record.text("stopped_by")));
  }
  tell_news();
  if (!has_room) throw std::runtime_error("it is not sent to " + server_->host());
}

inline void MlflowSink::tell_news() {
  for (std::string const& each : run_->news()) phase_->warn(told(each));
}

inline std::vector<std::string> MlflowSink::ended(std::string const& status) {
  MlflowSent const sent = run_->finish(status);
  sent_->set(sent);
  std::vector<std::string> all = run_->news();
  if (std::uint64_t const missing = sent.waiting + sent.dropped; missing != 0) {
    all.push_back(std::to_string(missing) + " of " + std::to_string(sent.points + missing) +
                  " values are not sent (" +
                  (sent.first_failure.empty() ? "the server took too long" : sent.first_failure) +
                  "): the files of the run have them, if it has Log or Csv");
  }
  run_.reset();
  return all;
}

inline void MlflowSink::finish(FitRun& phase) {
  if (!run_) return;
  phase_.reset();
  for (std::string const& each : ended(status_)) phase.warn(told(each));
}

inline void MlflowSink::close() {
  phase_.reset();  // the run is gone
  if (!run_) return;
  for (std::string const& each : ended("FAILED")) say_warning(told(each));
}

}  // namespace frugal::detail
