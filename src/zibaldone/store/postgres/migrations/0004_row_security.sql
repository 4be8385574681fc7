-- A second wall behind the statements' own filters: a transaction sees and changes rows of the
-- namespace that it was begun for, also where a statement forgets to say so. Upkeep sees all.
-- The owner is bound too; superusers and roles with BYPASSRLS are not.

CREATE FUNCTION zibaldone.is_upkeep() RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN current_setting('zibaldone.upkeep', true) = 'on';

DO $$
DECLARE
    guarded text;
BEGIN
    FOREACH guarded IN ARRAY ARRAY['documents', 'bodies', 'revisions', 'facets', 'document_tags',
        'audit', 'usage', 'usage_changes', 'chunks', 'vectors', 'jobs']
    LOOP
        EXECUTE format('ALTER TABLE zibaldone.%I ENABLE ROW LEVEL SECURITY', guarded);
        EXECUTE format('ALTER TABLE zibaldone.%I FORCE ROW LEVEL SECURITY', guarded);
        EXECUTE format('CREATE POLICY of_the_namespace ON zibaldone.%I USING ('
            'namespace = (SELECT current_setting(''zibaldone.namespace'', true)) '
            'OR (SELECT zibaldone.is_upkeep()))', guarded);
    END LOOP;
END
$$;

-- Sources of every namespace (*) are seen by all and changed by upkeep only.
ALTER TABLE zibaldone.sources ENABLE ROW LEVEL SECURITY;
ALTER TABLE zibaldone.sources FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_namespace ON zibaldone.sources
    USING (namespace = (SELECT current_setting('zibaldone.namespace', true))
           OR namespace = '*' OR (SELECT zibaldone.is_upkeep()))
    WITH CHECK ((SELECT zibaldone.is_upkeep()));

-- Only upkeep deals with schedules.
ALTER TABLE zibaldone.schedules ENABLE ROW LEVEL SECURITY;
ALTER TABLE zibaldone.schedules FORCE ROW LEVEL SECURITY;
CREATE POLICY of_upkeep ON zibaldone.schedules USING ((SELECT zibaldone.is_upkeep()));
