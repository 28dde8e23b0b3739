-- Functions belong to the server, not to the database.

-- The aggregate of rows of item_viewers that the other functions take.
CREATE OR REPLACE FUNCTION tidemark_union AS (dense, tokens, registers) ->
    (max(dense), groupUniqArrayArray(1025)(tokens), maxMap(registers));

-- Whether the registers count: some part had no tokens, or there are too many.
CREATE OR REPLACE FUNCTION tidemark_is_dense AS seen ->
    (tupleElement(seen, 1) > 0 OR length(tupleElement(seen, 2)) > 1024);

-- LogLog-Beta for 2^14 registers, with the polynomial of the API; n registers are
-- not zero. The lambda over one element is there to name values: a function's body is
-- put in the place of its call, and what stands in it twice is planned twice.
CREATE OR REPLACE FUNCTION tidemark_estimate AS registers -> arrayMap((n, z) ->
    toUInt64(floor(0.5 + 11817.000968551936 * n
        / (16384 - n + arraySum(rank -> 1 / bitShiftLeft(toUInt64(1), rank), mapValues(registers))
           - 0.371009760230692 * (16384 - n)
           + z * (0.00978811941207509 + z * (0.185796293324165 + z * (0.203015527328432
             + z * (-0.116710521803686 + z * (0.0431106699492820 + z * (-0.00599583540511831
             + z * 0.000449704299509437))))))))),
    [length(registers)], [log1p(16384 - length(registers))])[1];

-- How many different viewers there were, and the bounds, as the API says it: the
-- tuple (viewers, low, high). seen is a tidemark_union, reached the sum of reached over
-- the same rows of item_minutes: there are never more viewers than events that reached
-- them.
CREATE OR REPLACE FUNCTION tidemark_number AS (seen, reached) -> arrayMap((dense, n) -> (
        least(if(dense, greatest(n, 1025), n), reached),
        least(if(dense, greatest(toUInt64(floor(n / 1.015925)), 1025), n), reached),
        least(if(dense, greatest(toUInt64(ceil(n / 0.984075)), 1025), n), reached)),
    [tidemark_is_dense(seen)],
    [if(tidemark_is_dense(seen), tidemark_estimate(tupleElement(seen, 3)), length(tupleElement(seen, 2)))])[1];

-- The three one by one; a query that wants several is faster by tidemark_number.
CREATE OR REPLACE FUNCTION tidemark_viewers AS (seen, reached) -> tupleElement(tidemark_number(seen, reached), 1);
CREATE OR REPLACE FUNCTION tidemark_viewers_low AS (seen, reached) -> tupleElement(tidemark_number(seen, reached), 2);
CREATE OR REPLACE FUNCTION tidemark_viewers_high AS (seen, reached) -> tupleElement(tidemark_number(seen, reached), 3);

-- Whether a row of item_viewers is among the fewest that cover a range of time, its
-- end not included: days where they lie inside it, then hours, then minutes. The range
-- is moved outward to whole minutes.
CREATE OR REPLACE FUNCTION tidemark_covers AS (level, start, since, until) -> (
    level = 'day'
        AND start >= toStartOfDay(toStartOfMinute(toDateTime(since, 'UTC')) + 86399)
        AND start < toStartOfDay(toStartOfMinute(toDateTime(until, 'UTC') + 59))
    OR level = 'hour'
        AND start >= toStartOfHour(toStartOfMinute(toDateTime(since, 'UTC')) + 3599)
        AND start < toStartOfHour(toStartOfMinute(toDateTime(until, 'UTC') + 59))
        AND NOT (start >= toStartOfDay(toStartOfMinute(toDateTime(since, 'UTC')) + 86399)
            AND start < toStartOfDay(toStartOfMinute(toDateTime(until, 'UTC') + 59)))
    OR level = 'minute'
        AND start >= toStartOfMinute(toDateTime(since, 'UTC'))
        AND start < toStartOfMinute(toDateTime(until, 'UTC') + 59)
        AND NOT (start >= toStartOfHour(toStartOfMinute(toDateTime(since, 'UTC')) + 3599)
            AND start < toStartOfHour(toStartOfMinute(toDateTime(until, 'UTC') + 59))));
