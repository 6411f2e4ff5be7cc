"""Bad input and trouble: what can go wrong, and which tests let it happen and read what is said.

Here, real agents and the real command line; the finer cases where their code is tested. A name that does not
exist any more fails ``test_index``.
"""

from __future__ import annotations

LAB, TROUBLE = "tests/lab/test_", "tests/trouble/test_"
CORE, CLI, APP = "tests/core/", "tests/app/cli/test_", "tests/app/"

COVERED: dict[str, tuple[str, ...]] = {
    # --- scripts -------------------------------------------------------------------------------------------
    "script missing, not Python, with a syntax error": (
        f"{TROUBLE}scripts.py::test_what_is_no_script_is_refused_at_once",
        f"{CORE}script/test_analysis.py::test_an_invalid_script_is_reported",
        f"{CORE}script/test_find.py::test_a_near_name_is_suggested",
    ),
    "script raising at import": (
        f"{CORE}trainer/test_exits.py::test_a_module_beside_the_script_counts_as_the_script",
    ),
    "script raising mid-epoch on one member only": (
        f"{TROUBLE}scripts.py::test_an_error_on_one_member_alone_ends_both_and_names_it",
        f"{CORE}run/coordinator/test_machine.py::"
        "test_a_script_error_that_comes_after_its_consequence_is_still_the_cause",
    ),
    "script that cannot write on one member": (
        f"{TROUBLE}scripts.py::test_a_worker_that_cannot_write_does_not_throw_away_the_training",
        f"{CORE}run/coordinator/test_machine.py::"
        "test_when_another_members_script_fails_the_chief_saves_the_weights_before_all_ends",
    ),
    "script calling sys.exit": (
        f"{CORE}trainer/test_faults.py::test_a_warm_trainer_runs_a_script_like_a_cold_one",
        f"{CORE}trainer/test_exits.py::test_another_exit_code_is_reported_with_its_line",
        f"{CORE}trainer/test_exits.py::test_exit_code_zero_is_a_normal_end",
    ),
    "script printing megabytes; packages of its own called app and core": (
        f"{CORE}trainer/test_session.py::test_a_script_runs_as_python_would_run_it_and_may_print_megabytes",
        f"{CORE}supervisor/test_output.py::test_the_newest_of_too_many_lines_stay_and_the_rest_is_counted",
    ),
    "training with neither fit nor a strategy": (
        f"{TROUBLE}scripts.py::test_a_script_that_shares_nothing_is_told_so",
    ),
    "a dropped folder with two scripts, a file that is no script, a project gone since its last run": (
        f"{APP}views/test_train_setup.py::test_a_dropped_folder_with_two_scripts_lets_the_person_choose_one",
        f"{APP}views/test_train_setup.py::test_things_that_are_no_script_are_refused_with_what_to_do",
        f"{APP}views/test_train_setup.py::test_a_project_that_is_gone_since_says_so",
    ),
    # --- projects ------------------------------------------------------------------------------------------
    "project over the limit": (
        f"{TROUBLE}plans.py::test_a_project_of_too_many_files_says_where_most_of_them_are",
        f"{CORE}project/test_scan.py::test_too_many_files_are_named",
    ),
    "project with links, devices or escaping paths": (
        f"{TROUBLE}plans.py::test_what_must_not_travel_stays_and_is_named",
        f"{CORE}project/test_files.py::test_a_device_is_no_file",
        f"{CORE}run/test_admission.py::test_a_request_with_an_escaping_path_is_refused",
        f"{CORE}project/test_store.py::test_a_path_that_escapes_is_refused_and_nothing_is_written",
        f"{CORE}project/test_outputs.py::test_a_chief_cannot_write_outside_the_runs_folder",
    ),
    # --- people --------------------------------------------------------------------------------------------
    "a peer's user who says no": (f"{TROUBLE}consent.py::test_a_no_ends_it_and_nothing_came_there",),
    "a peer's user who never answers": (
        f"{CORE}run/coordinator/test_machine.py::"
        "test_a_user_who_never_answers_is_named_and_the_question_withdrawn",
    ),
    "unknown or unpaired device in --with": (
        f"{TROUBLE}plans.py::test_what_cannot_be_planned_is_refused",
        f"{TROUBLE}plans.py::test_a_device_that_is_seen_but_not_paired_is_refused",
    ),
    "two chiefs, no chief, a role for a device not in the run": (
        f"{TROUBLE}plans.py::test_what_cannot_be_planned_is_refused",
        f"{CORE}cluster/test_roles.py::test_whatever_is_fixed_there_is_one_chief_or_a_sentence",
    ),
    "Ctrl-C at every stage": (
        f"{TROUBLE}starting.py::test_ctrl_c_before_there_is_a_plan_starts_nothing",
        f"{TROUBLE}consent.py::test_ctrl_c_while_the_other_is_asked_takes_the_question_away",
        f"{TROUBLE}starting.py::test_ctrl_c_while_trainers_start_stops_them_at_once",
        f"{CLI}run_for_real.py::test_a_run_through_a_running_agent_is_shown_and_stopped_by_ctrl_c",
        f"{CLI}run.py::test_ctrl_c_stops_then_terminates_then_leaves",
        f"{CLI}demo.py::test_ctrl_c_ends_every_process_of_the_demo",
    ),
    "a terminal that is closed, a command that is killed": (
        f"{TROUBLE}terminals.py::test_a_run_ends_with_its_terminal_unless_it_is_to_outlive_it",
        f"{TROUBLE}terminals.py::test_a_run_goes_on_in_the_node_that_owns_it_when_tandem_run_is_killed",
        f"{CLI}interrupts.py::test_a_closed_terminal_counts_unless_the_program_is_to_outlive_it",
        f"{CLI}screen.py::test_words_to_a_terminal_that_was_closed_go_nowhere",
    ),
    # --- laptops and networks ------------------------------------------------------------------------------
    "port taken": (
        f"{CORE}node/test_node.py::test_a_taken_port_is_reported_and_another_one_used",
        f"{CORE}trainer/test_faults.py::test_a_taken_port_is_reported",
    ),
    "peer offline at start": (f"{TROUBLE}plans.py::test_a_device_that_is_off_is_refused",),
    "nobody else there to take part": (
        f"{CORE}run/test_runs.py::test_a_run_whose_only_partner_is_away_is_refused_unless_it_is_meant_alone",
        f"{CORE}run/test_planning.py::test_absent_laptops_are_named_when_a_run_takes_everybody_present",
        f"{CLI}run.py::test_a_run_that_would_be_one_alone_is_asked_about_first",
        f"{CLI}run.py::test_without_anybody_to_ask_a_run_that_would_be_one_alone_is_refused",
        f"{APP}views/test_train_setup.py::test_a_run_that_would_be_one_alone_is_asked_about_before_it_starts",
    ),
    "Train pressed on two laptops at the same moment": (
        f"{CORE}run/test_precedence.py::test_one_of_two_that_press_at_once_wins_and_the_other_takes_part",
        f"{CORE}run/test_precedence.py::test_one_of_three_that_press_at_once_wins",
        f"{CLI}run_at_once.py::test_one_of_two_bare_runs_goes_first_and_the_other_stays_to_be_asked",
    ),
    "peer closed while its user is asked": (
        f"{TROUBLE}consent.py::test_a_laptop_that_is_closed_while_its_user_is_asked_is_named",
    ),
    "peer dying during start-up": (
        f"{TROUBLE}starting.py::test_a_laptop_that_dies_while_trainers_start_is_named_in_time",
    ),
    "peer killed in training": (
        f"{LAB}losses.py::test_a_killed_node_is_told_by_everyone_within_three_seconds",
        f"{LAB}losses.py::test_a_killed_starter_is_told_by_everyone_within_three_seconds",
        f"{LAB}losses.py::test_a_killed_trainer_is_told_by_everyone_within_three_seconds",
    ),
    "peer lost while a screen, a pairing, a question or a dragged role is in front": (
        f"{APP}views/test_devices.py::test_a_reading_that_stays_away_is_shown_as_old",
        f"{APP}test_peer_lost.py::"
        "test_while_a_run_is_put_together_it_is_left_out_and_what_was_chosen_comes_back_with_it",
        f"{APP}test_peer_lost.py::test_a_row_that_is_dragged_while_its_laptop_is_lost_changes_nothing",
        f"{APP}test_peer_lost.py::test_while_it_trains_the_reason_stands_there_and_the_curves_stay",
        f"{APP}views/test_machines.py::test_a_laptop_that_falls_silent_turns_grey_with_its_age",
        f"{APP}test_peer_lost.py::test_on_runs_the_run_has_failed_and_the_choice_and_order_stay",
        f"{APP}test_peer_lost.py::test_on_settings_a_name_being_typed_stays",
        f"{APP}test_peer_lost.py::test_a_pairing_that_breaks_says_so_over_every_screen",
        f"{APP}test_peer_lost.py::test_a_question_whose_asker_is_lost_goes_and_says_why",
    ),
    "cable pulled": (
        f"{LAB}losses.py::"
        "test_a_pulled_cable_is_waited_for_as_long_as_was_asked_and_then_each_of_its_ends_does_without",
        f"{LAB}losses.py::test_stop_is_taken_at_once_while_a_laptop_is_away",
        f"{LAB}faults.py::test_stopped_nodes_closed_lids_pulled_cables_and_another_address_end_nothing",
        f"{LAB}meeting.py::test_a_pulled_cable_is_reported_after_ten_seconds_and_they_meet_again_once_it_is_back",
    ),
    "a lid closed, a node that stands still, a cable out for a while, another address": (
        f"{LAB}faults.py::test_stopped_nodes_closed_lids_pulled_cables_and_another_address_end_nothing",
    ),
    "a script asleep, a step that takes long, a trainer that stands still": (
        f"{LAB}faults.py::test_slow_steps_sleeping_scripts_and_stopped_trainers_are_waited_for",
        f"{CORE}exchange/test_processes.py::test_a_stopped_process_is_waited_for",
    ),
    "a wire on which one step takes most of a minute": (
        f"{LAB}slow_wire.py::"
        "test_25_million_parameters_train_at_20_mbit_even_if_the_cable_is_out_in_the_midst_of_a_step",
    ),
    "a laptop that slept itself": (
        f"{CORE}link/test_driver.py::test_a_laptop_that_itself_slept_does_not_blame_the_other",
    ),
    "version mismatch": (
        f"{CORE}node/test_together.py::test_other_versions_link_and_say_why_no_run_is_possible",
        f"{CORE}link/test_hub.py::test_another_protocol_is_named_on_both_sides_and_nothing_else_said",
        f"{CORE}pairing/test_driver.py::test_another_version_is_named_on_the_callers_screen",
    ),
    "wrong certificate": (
        f"{CORE}net/test_tls.py::test_invariant_a_device_without_a_pin_is_refused",
        f"{CORE}net/test_tls.py::test_invariant_a_server_with_another_key_is_refused",
        f"{CORE}link/test_hub.py::test_another_device_at_a_known_address_is_not_linked",
        f"{CORE}pairing/test_driver.py::test_a_known_name_with_a_new_key_is_warned_of",
    ),
    "garbage or huge frames on every port, half-open connections": (
        f"{TROUBLE}strangers.py::test_a_training_goes_on_whatever_strangers_send",
        f"{CORE}link/test_frames.py::test_any_body_is_a_message_or_a_bad_frame",
        f"{CORE}link/test_hub.py::test_garbage_from_a_paired_device_ends_its_link_and_is_named",
        f"{CORE}node/test_local_socket.py::test_garbage_is_answered_and_the_next_command_heard",
        f"{CORE}pairing/test_driver.py::test_half_open_connections_hold_no_more_than_four_places",
        f"{CORE}exchange/test_strangers.py::"
        "test_hundreds_of_junk_connections_leave_no_thread_no_socket_and_no_memory",
        f"{CORE}exchange/test_in_memory.py::test_a_peer_that_sends_garbage_is_told_so_and_the_wait_ends",
    ),
    "strangers at the ports of a run, another user of the laptop, somebody who reads along": (
        f"{LAB}sealed.py::test_a_third_host_finds_no_port_that_answers",
        f"{LAB}sealed.py::test_another_user_of_the_laptop_finds_no_port_that_answers_and_no_file",
        f"{LAB}sealed.py::test_who_reads_along_does_not_see_what_members_send",
        f"{LAB}sealed.py::test_the_trainer_has_the_runs_key_and_never_the_laptops",
    ),
    "mDNS records with oversized, malformed or spoofed fields": (
        f"{CORE}discovery/test_presence.py::"
        "test_hostile_records_are_ignored_and_a_spoofed_id_does_not_hide_the_real_device",
        f"{CORE}discovery/test_record.py::test_any_txt_bytes_give_a_sighting_or_nothing",
        f"{CORE}node/test_together.py::test_a_record_that_claims_a_paired_laptops_id_changes_nothing_proven",
    ),
    # --- homes ---------------------------------------------------------------------------------------------
    "home not writable": (
        f"{TROUBLE}homes.py::test_a_home_that_cannot_be_is_refused",
        f"{TROUBLE}disks.py::test_a_home_on_a_disk_that_may_only_be_read_is_refused",
        f"{TROUBLE}disks.py::test_a_home_on_a_full_disk_is_refused",
        f"{TROUBLE}disks.py::test_a_window_on_such_a_home_says_so_on_a_page_of_its_own",
    ),
    "wrong modes on the key": (
        f"{TROUBLE}homes.py::test_a_key_that_others_can_read_is_refused_until_it_is_private",
    ),
    "corrupt trust store": (
        f"{TROUBLE}homes.py::test_a_damaged_list_of_devices_trusts_nobody",
        f"{CORE}home/test_trust_file.py::test_no_flipped_byte_makes_another_device_trusted",
    ),
    "corrupt history": (
        f"{TROUBLE}homes.py::test_a_damaged_summary_is_said_and_the_rest_of_the_history_is_there",
        f"{TROUBLE}windows.py::test_a_damaged_history_is_said_on_runs_and_what_is_whole_of_it_can_be_used",
        f"{CORE}history/test_history.py::test_a_run_whose_summary_is_damaged_is_named_and_its_folder_left_alone",
    ),
    "a home that turns read-only or full while it is in use": (
        f"{TROUBLE}disks.py::"
        "test_a_home_that_turns_read_only_refuses_what_it_cannot_keep_and_stays_as_it_was",
        f"{TROUBLE}windows.py::test_a_home_whose_disk_refuses_while_the_window_is_open",
        f"{CORE}history/test_history.py::test_a_disk_that_fails_for_a_while_loses_nothing",
        f"{CORE}trainer/test_exits.py::test_a_full_or_read_only_disk_is_not_the_scripts_fault",
    ),
    "disk full while writing history": (
        f"{TROUBLE}disks.py::test_a_disk_that_is_full_of_history_ends_no_training",
        f"{CORE}run/test_runs.py::test_a_full_disk_does_not_end_a_training",
    ),
    # --- machines under every order of events --------------------------------------------------------------
    "property-based: frames, pairing, lifecycle": (
        f"{CORE}link/test_frames.py::test_any_body_is_a_message_or_a_bad_frame",
        f"{CORE}pairing/test_machine.py::test_no_order_of_events_breaks_the_invariants",
        f"{CORE}run/test_whole_run.py::test_every_run_ends_once_and_with_all_its_trainers",
    ),
}
