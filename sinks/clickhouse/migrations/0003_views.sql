-- A month's rows have all their namesakes in the same month, so FINAL need not look
-- across.

CREATE OR REPLACE VIEW {{.}}.item_minutes_exact AS
SELECT minute, type, dimension, value, rest, kind, item, sum(m.events) AS events, sum(m.reached) AS reached
FROM {{.}}.item_minutes AS m FINAL
GROUP BY minute, type, dimension, value, rest, kind, item
SETTINGS do_not_merge_across_partitions_select_final = 1;

CREATE OR REPLACE VIEW {{.}}.item_hours_exact AS
SELECT toStartOfHour(minute) AS hour, type, dimension, value, rest, kind, item, sum(m.events) AS events, sum(m.reached) AS reached
FROM {{.}}.item_minutes AS m FINAL
GROUP BY hour, type, dimension, value, rest, kind, item
SETTINGS do_not_merge_across_partitions_select_final = 1;

CREATE OR REPLACE VIEW {{.}}.item_days_exact AS
SELECT toDate(minute) AS day, type, dimension, value, rest, kind, item, sum(m.events) AS events, sum(m.reached) AS reached
FROM {{.}}.item_minutes AS m FINAL
GROUP BY day, type, dimension, value, rest, kind, item
SETTINGS do_not_merge_across_partitions_select_final = 1;

-- The 100 highest items of each minute, of each type and value of a dimension.
CREATE OR REPLACE VIEW {{.}}.top_minutes AS
SELECT minute, type, dimension, value, rest, place, item, events
FROM (
    SELECT *, row_number() OVER (PARTITION BY minute, type, dimension, value, rest ORDER BY events DESC, item) AS place
    FROM {{.}}.item_minutes_exact
    WHERE kind = 'item'
)
WHERE place <= 100;

CREATE OR REPLACE VIEW {{.}}.outcomes_exact AS
SELECT minute, outcome, reason, sum(o.records) AS records
FROM {{.}}.outcomes AS o FINAL
GROUP BY minute, outcome, reason
SETTINGS do_not_merge_across_partitions_select_final = 1;

CREATE OR REPLACE VIEW {{.}}.items_latest AS
SELECT item, max(i.title).2 AS title, max(i.url).2 AS url, max(i.image).2 AS image
FROM {{.}}.items AS i
GROUP BY item;
