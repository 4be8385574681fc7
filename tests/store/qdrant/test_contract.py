"""With Qdrant beside it, a store keeps what its contract says of vectors."""

from __future__ import annotations

from tests.store.contract.test_vectors import (
    test_a_deleted_document_is_not_found,
    test_a_disabled_source_is_not_searched,
    test_a_namespace_and_a_folder_see_only_their_own,
    test_coverage_counts_what_waits_for_a_tenant,
    test_dropping_a_models_vectors_is_seen_by_others,
    test_filters_are_applied_before_the_cut,
    test_models_do_not_mix,
    test_nothing_is_found_where_there_is_nothing,
    test_putting_a_vector_for_a_passage_that_is_gone_leaves_nothing,
    test_what_one_process_writes_the_next_search_of_another_finds,
    varied,
    vectors,
)

__all__ = [
    "test_a_deleted_document_is_not_found",
    "test_a_disabled_source_is_not_searched",
    "test_a_namespace_and_a_folder_see_only_their_own",
    "test_coverage_counts_what_waits_for_a_tenant",
    "test_dropping_a_models_vectors_is_seen_by_others",
    "test_filters_are_applied_before_the_cut",
    "test_models_do_not_mix",
    "test_nothing_is_found_where_there_is_nothing",
    "test_putting_a_vector_for_a_passage_that_is_gone_leaves_nothing",
    "test_what_one_process_writes_the_next_search_of_another_finds",
    "varied",
    "vectors",
]
