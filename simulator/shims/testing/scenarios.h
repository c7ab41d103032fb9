#pragma once

// Each scenario returns the exit code of the program; 0 unless it cannot go on.

int scenario_memory();
int scenario_one_way();
int scenario_copies();
int scenario_copy_rows();
int scenario_launch();
int scenario_bad_module();
int scenario_linked_code();
int scenario_handles();
int scenario_sticky();
int scenario_many_calls();
int scenario_blocked_threads();
int scenario_threads();
int scenario_main_leaves();
int scenario_time();
int scenario_timed_waits();
int scenario_fork();
int scenario_pinned();
int scenario_dereference();
int scenario_output();
int scenario_bootstrap();
int scenario_driver();
int scenario_refused();
