-- What writes have added to the statistics of some terms and is not folded yet: numbers of chunks,
-- and no more than that is seen of other namespaces. It looks at 200 new and 200 removed chunks of
-- the caller's namespace, and at a hundred of namespaces on either side, so that an import slows down
-- nobody's searches. They are found by the indexes, planned once: the tables are full of what was
-- folded a moment ago. OFFSET 0 keeps a subquery apart: it is asked for each of them.
CREATE OR REPLACE FUNCTION zibaldone.unfolded(terms text[], any_term tsquery, own text)
    RETURNS TABLE (term text, chunks bigint, length bigint)
    LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    before text := current_setting('zibaldone.upkeep', true);
BEGIN
    PERFORM set_config('zibaldone.upkeep', 'on', true);
    RETURN QUERY WITH added AS MATERIALIZED (
        SELECT t.length, t.terms FROM (
            (SELECT u.chunk_key FROM zibaldone.unposted u
             WHERE u.namespace = own COLLATE "C" LIMIT 200)
            UNION ALL (SELECT u.chunk_key FROM zibaldone.unposted u
             WHERE u.namespace < own COLLATE "C" ORDER BY u.namespace DESC LIMIT 100)
            UNION ALL (SELECT u.chunk_key FROM zibaldone.unposted u
             WHERE u.namespace > own COLLATE "C" ORDER BY u.namespace LIMIT 100)
        ) few CROSS JOIN LATERAL (
            SELECT * FROM zibaldone.chunk_terms c WHERE c.chunk_key = few.chunk_key OFFSET 0) t
    ), removed AS MATERIALIZED (
        SELECT few.length, few.terms FROM (
            (SELECT * FROM zibaldone.removed_terms r
             WHERE r.namespace = own COLLATE "C" LIMIT 200)
            UNION ALL (SELECT * FROM zibaldone.removed_terms r
             WHERE r.namespace < own COLLATE "C" ORDER BY r.namespace DESC LIMIT 100)
            UNION ALL (SELECT * FROM zibaldone.removed_terms r
             WHERE r.namespace > own COLLATE "C" ORDER BY r.namespace LIMIT 100)
        ) few
        WHERE NOT EXISTS (
            SELECT 1 FROM zibaldone.unposted u
            WHERE u.namespace = few.namespace AND u.chunk_key = few.chunk_key OFFSET 0)
    )
    SELECT '', count(*), coalesce(sum(a.length), 0)::bigint FROM added a
    UNION ALL
    SELECT '', -count(*), -coalesce(sum(r.length), 0)::bigint FROM removed r
    UNION ALL
    SELECT l.lexeme, count(*), 0::bigint
    FROM added a CROSS JOIN unnest(CASE WHEN a.terms @@ any_term THEN a.terms END) l
    WHERE l.lexeme = ANY(unfolded.terms) GROUP BY l.lexeme
    UNION ALL
    SELECT l.lexeme, -count(*), 0::bigint
    FROM removed r CROSS JOIN unnest(CASE WHEN r.terms @@ any_term THEN r.terms END) l
    WHERE l.lexeme = ANY(unfolded.terms) GROUP BY l.lexeme;
    PERFORM set_config('zibaldone.upkeep', before, true);
END
$$;
