SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.api_tokens (
    id bigint NOT NULL,
    person_id bigint NOT NULL,
    name character varying(120) NOT NULL,
    token_hash character varying(64) NOT NULL,
    prefix character varying(16) NOT NULL,
    scope character varying(16) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    used_at timestamp with time zone,
    CONSTRAINT ck_api_tokens_scope CHECK (((scope)::text = ANY ((ARRAY['read'::character varying, 'submit'::character varying, 'verify'::character varying, 'manage'::character varying])::text[])))
);
CREATE SEQUENCE public.api_tokens_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.api_tokens_id_seq OWNED BY public.api_tokens.id;
CREATE TABLE public.artifacts (
    attempt_id bigint NOT NULL,
    name character varying(200) NOT NULL,
    digest character varying(64) NOT NULL,
    size bigint NOT NULL
);
CREATE TABLE public.attempts (
    id bigint NOT NULL,
    submission_id bigint NOT NULL,
    person_id bigint NOT NULL,
    course_task_id bigint NOT NULL,
    digest character varying(64) NOT NULL,
    task character varying(120) NOT NULL,
    task_version character varying(64) NOT NULL,
    profile character varying(40) NOT NULL,
    need character varying(16) NOT NULL,
    lane character varying(16) NOT NULL,
    state character varying(16) NOT NULL,
    forced boolean NOT NULL,
    queued_at timestamp with time zone NOT NULL,
    available_at timestamp with time zone NOT NULL,
    claimed_at timestamp with time zone,
    finished_at timestamp with time zone,
    phase character varying(40),
    worker character varying(120),
    lease_token bigint NOT NULL,
    lease_until timestamp with time zone,
    tries bigint NOT NULL,
    cancel_requested_at timestamp with time zone,
    cached_from bigint,
    regrade_of bigint,
    counts boolean NOT NULL,
    batch character varying(40),
    failure text,
    event_seq bigint NOT NULL,
    CONSTRAINT ck_attempts_attemptstate CHECK (((state)::text = ANY ((ARRAY['queued'::character varying, 'running'::character varying, 'judged'::character varying, 'failed'::character varying, 'cancelled'::character varying])::text[]))),
    CONSTRAINT ck_attempts_lane CHECK (((lane)::text = ANY ((ARRAY['interactive'::character varying, 'regrade'::character varying])::text[])))
);
CREATE SEQUENCE public.attempts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.attempts_id_seq OWNED BY public.attempts.id;
CREATE TABLE public.blobs (
    digest character varying(64) NOT NULL,
    size bigint NOT NULL,
    data bytea NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.certificates (
    id bigint NOT NULL,
    public_id character varying(40) NOT NULL,
    course_id bigint NOT NULL,
    person_id bigint NOT NULL,
    issued_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone
);
CREATE SEQUENCE public.certificates_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.certificates_id_seq OWNED BY public.certificates.id;
CREATE TABLE public.comments (
    id bigint NOT NULL,
    attempt_id bigint NOT NULL,
    author_id bigint,
    path character varying(300),
    line bigint,
    text text NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.comments_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.comments_id_seq OWNED BY public.comments.id;
CREATE TABLE public.course_tasks (
    id bigint NOT NULL,
    course_id bigint NOT NULL,
    task character varying(120) NOT NULL,
    version character varying(64) NOT NULL,
    title character varying(200) NOT NULL,
    profile character varying(40) NOT NULL,
    need character varying(16) NOT NULL,
    "position" bigint NOT NULL,
    weight double precision NOT NULL,
    required boolean NOT NULL,
    opens_at timestamp with time zone,
    due_at timestamp with time zone,
    late_policy character varying(16) NOT NULL,
    late_loss double precision NOT NULL,
    late_days bigint,
    max_per_day bigint,
    max_total bigint,
    max_concurrent bigint,
    hidden_until_due boolean NOT NULL,
    withdrawn_at timestamp with time zone,
    CONSTRAINT ck_course_tasks_latepolicy CHECK (((late_policy)::text = ANY ((ARRAY['closed'::character varying, 'accepted'::character varying, 'reduced'::character varying])::text[])))
);
CREATE SEQUENCE public.course_tasks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.course_tasks_id_seq OWNED BY public.course_tasks.id;
CREATE TABLE public.courses (
    id bigint NOT NULL,
    name character varying(120) NOT NULL,
    title character varying(200) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    closed_at timestamp with time zone,
    time_zone character varying(64)
);
CREATE SEQUENCE public.courses_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.courses_id_seq OWNED BY public.courses.id;
CREATE TABLE public.enrolments (
    id bigint NOT NULL,
    course_id bigint NOT NULL,
    person_id bigint NOT NULL,
    role character varying(16) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT ck_enrolments_role CHECK (((role)::text = ANY ((ARRAY['learner'::character varying, 'instructor'::character varying, 'admin'::character varying, 'ci'::character varying])::text[])))
);
CREATE SEQUENCE public.enrolments_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.enrolments_id_seq OWNED BY public.enrolments.id;
CREATE TABLE public.events (
    id bigint NOT NULL,
    attempt_id bigint,
    seq bigint NOT NULL,
    subject character varying(80),
    kind character varying(40) NOT NULL,
    at timestamp with time zone NOT NULL,
    actor_id bigint,
    data text NOT NULL
);
CREATE SEQUENCE public.events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.events_id_seq OWNED BY public.events.id;
CREATE TABLE public.extensions (
    id bigint NOT NULL,
    enrolment_id bigint NOT NULL,
    course_task_id bigint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    reason text NOT NULL
);
CREATE SEQUENCE public.extensions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.extensions_id_seq OWNED BY public.extensions.id;
CREATE TABLE public.gates (
    name character varying(40) NOT NULL,
    since timestamp with time zone NOT NULL,
    actor_id bigint,
    reason text NOT NULL
);
CREATE TABLE public.grade_codes (
    attempt_id bigint NOT NULL,
    code character varying(20) NOT NULL,
    severity character varying(16) NOT NULL,
    course_task_id bigint NOT NULL,
    person_id bigint NOT NULL,
    CONSTRAINT ck_grade_codes_severity CHECK (((severity)::text = ANY ((ARRAY['error'::character varying, 'warning'::character varying, 'hint'::character varying, 'review'::character varying])::text[])))
);
CREATE TABLE public.grades (
    attempt_id bigint NOT NULL,
    verdict character varying(16) NOT NULL,
    points double precision NOT NULL,
    max_points double precision NOT NULL,
    document text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT ck_grades_verdict CHECK (((verdict)::text = ANY ((ARRAY['judge_error'::character varying, 'held'::character varying, 'timed_out'::character varying, 'deadlocked'::character varying, 'out_of_memory'::character varying, 'crashed'::character varying, 'rejected'::character varying, 'accepted'::character varying])::text[])))
);
CREATE TABLE public.invitations (
    id bigint NOT NULL,
    course_id bigint NOT NULL,
    code character varying(40) NOT NULL,
    role character varying(16) NOT NULL,
    expires_at timestamp with time zone,
    max_uses bigint,
    num_uses bigint NOT NULL,
    revoked_at timestamp with time zone,
    CONSTRAINT ck_invitations_role CHECK (((role)::text = ANY ((ARRAY['learner'::character varying, 'instructor'::character varying, 'admin'::character varying, 'ci'::character varying])::text[])))
);
CREATE SEQUENCE public.invitations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.invitations_id_seq OWNED BY public.invitations.id;
CREATE TABLE public.outbox (
    id bigint NOT NULL,
    topic character varying(40) NOT NULL,
    attempt_id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    taken_until timestamp with time zone,
    sent_at timestamp with time zone,
    tries bigint NOT NULL
);
CREATE SEQUENCE public.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.outbox_id_seq OWNED BY public.outbox.id;
CREATE TABLE public.overrides (
    id bigint NOT NULL,
    attempt_id bigint NOT NULL,
    actor_id bigint,
    verdict character varying(16) NOT NULL,
    points double precision NOT NULL,
    reason text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    withdrawn_at timestamp with time zone,
    CONSTRAINT ck_overrides_verdict CHECK (((verdict)::text = ANY ((ARRAY['judge_error'::character varying, 'held'::character varying, 'timed_out'::character varying, 'deadlocked'::character varying, 'out_of_memory'::character varying, 'crashed'::character varying, 'rejected'::character varying, 'accepted'::character varying])::text[])))
);
CREATE SEQUENCE public.overrides_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.overrides_id_seq OWNED BY public.overrides.id;
CREATE TABLE public.people (
    id bigint NOT NULL,
    login character varying(120) NOT NULL,
    name character varying(200) NOT NULL,
    role character varying(16) NOT NULL,
    password_hash text,
    must_change boolean NOT NULL,
    session_epoch bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    disabled_at timestamp with time zone,
    CONSTRAINT ck_people_role CHECK (((role)::text = ANY ((ARRAY['learner'::character varying, 'instructor'::character varying, 'admin'::character varying, 'ci'::character varying])::text[])))
);
CREATE SEQUENCE public.people_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.people_id_seq OWNED BY public.people.id;
CREATE TABLE public.sources (
    digest character varying(64) NOT NULL,
    files text NOT NULL,
    size bigint NOT NULL
);
CREATE TABLE public.standings (
    course_task_id bigint NOT NULL,
    person_id bigint NOT NULL,
    attempt_id bigint NOT NULL,
    points double precision NOT NULL,
    max_points double precision NOT NULL,
    verdict character varying(16) NOT NULL,
    late_days bigint NOT NULL,
    overridden boolean NOT NULL,
    CONSTRAINT ck_standings_verdict CHECK (((verdict)::text = ANY ((ARRAY['judge_error'::character varying, 'held'::character varying, 'timed_out'::character varying, 'deadlocked'::character varying, 'out_of_memory'::character varying, 'crashed'::character varying, 'rejected'::character varying, 'accepted'::character varying])::text[])))
);
CREATE TABLE public.submissions (
    id bigint NOT NULL,
    person_id bigint NOT NULL,
    course_task_id bigint NOT NULL,
    digest character varying(64) NOT NULL,
    name character varying(200) NOT NULL,
    submitted_at timestamp with time zone NOT NULL,
    idempotency_key character varying(80)
);
CREATE SEQUENCE public.submissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.submissions_id_seq OWNED BY public.submissions.id;
CREATE TABLE public.turns (
    person_id bigint NOT NULL,
    lane character varying(16) NOT NULL,
    turn bigint NOT NULL,
    CONSTRAINT ck_turns_lane CHECK (((lane)::text = ANY ((ARRAY['interactive'::character varying, 'regrade'::character varying])::text[])))
);
CREATE TABLE public.workers (
    name character varying(120) NOT NULL,
    needs text NOT NULL,
    slots bigint NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    draining boolean NOT NULL,
    host text
);
ALTER TABLE ONLY public.api_tokens ALTER COLUMN id SET DEFAULT nextval('public.api_tokens_id_seq'::regclass);
ALTER TABLE ONLY public.attempts ALTER COLUMN id SET DEFAULT nextval('public.attempts_id_seq'::regclass);
ALTER TABLE ONLY public.certificates ALTER COLUMN id SET DEFAULT nextval('public.certificates_id_seq'::regclass);
ALTER TABLE ONLY public.comments ALTER COLUMN id SET DEFAULT nextval('public.comments_id_seq'::regclass);
ALTER TABLE ONLY public.course_tasks ALTER COLUMN id SET DEFAULT nextval('public.course_tasks_id_seq'::regclass);
ALTER TABLE ONLY public.courses ALTER COLUMN id SET DEFAULT nextval('public.courses_id_seq'::regclass);
ALTER TABLE ONLY public.enrolments ALTER COLUMN id SET DEFAULT nextval('public.enrolments_id_seq'::regclass);
ALTER TABLE ONLY public.events ALTER COLUMN id SET DEFAULT nextval('public.events_id_seq'::regclass);
ALTER TABLE ONLY public.extensions ALTER COLUMN id SET DEFAULT nextval('public.extensions_id_seq'::regclass);
ALTER TABLE ONLY public.invitations ALTER COLUMN id SET DEFAULT nextval('public.invitations_id_seq'::regclass);
ALTER TABLE ONLY public.outbox ALTER COLUMN id SET DEFAULT nextval('public.outbox_id_seq'::regclass);
ALTER TABLE ONLY public.overrides ALTER COLUMN id SET DEFAULT nextval('public.overrides_id_seq'::regclass);
ALTER TABLE ONLY public.people ALTER COLUMN id SET DEFAULT nextval('public.people_id_seq'::regclass);
ALTER TABLE ONLY public.submissions ALTER COLUMN id SET DEFAULT nextval('public.submissions_id_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('0006');
INSERT INTO public.api_tokens VALUES (1, 2, 'laptop', '713a5a1430f0442b342fde4574da9c8b55b6b98326c4352e856eb6b21e54f6cd', 'grd_0PEZ', 'submit', '2026-11-22 23:05:30.514611+00', NULL, NULL, NULL);
INSERT INTO public.artifacts VALUES (4, 'report.html', '31b0ac93b0651300f92449e01f249e189106616cd451bace8e37291dd9bde50a', 11);
INSERT INTO public.attempts VALUES (1, 1, 2, 1, '2bbeebd675fc08b6f9468ed28c4dbb59841965477397abc014665c2177594c11', 'ddp-toy', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'cpu', 'cpu', 'interactive', 'judged', false, '2026-11-22 23:05:30.349927+00', '2026-11-22 23:05:30.349927+00', '2026-11-22 23:05:30.359727+00', '2026-11-22 23:05:30.366267+00', NULL, 'w1', 1, NULL, 1, NULL, NULL, NULL, true, NULL, NULL, 3);
INSERT INTO public.attempts VALUES (2, 2, 2, 1, 'b33d13b91c4ae926e23b4a1bec11f01f7c250da8f81a8e8e67bb84d8c27ffc92', 'ddp-toy', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'cpu', 'cpu', 'interactive', 'judged', false, '2026-11-22 23:05:30.383142+00', '2026-11-22 23:05:30.383142+00', '2026-11-22 23:05:30.386285+00', '2026-11-22 23:05:30.389505+00', NULL, 'w1', 1, NULL, 1, NULL, NULL, NULL, true, NULL, NULL, 3);
INSERT INTO public.attempts VALUES (3, 3, 3, 1, 'e01692286d124cbbd87afa8da52bf7c94438461df0216a7a6231ebebeeec05b5', 'ddp-toy', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'cpu', 'cpu', 'interactive', 'judged', false, '2026-11-22 23:05:30.398716+00', '2026-11-22 23:05:30.398716+00', '2026-11-22 23:05:30.403071+00', '2026-11-22 23:05:30.405725+00', NULL, 'w1', 1, NULL, 1, NULL, NULL, NULL, true, NULL, NULL, 5);
INSERT INTO public.attempts VALUES (4, 2, 2, 1, 'b33d13b91c4ae926e23b4a1bec11f01f7c250da8f81a8e8e67bb84d8c27ffc92', 'ddp-toy', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'cpu', 'cpu', 'regrade', 'judged', true, '2026-11-22 23:05:30.423223+00', '2026-11-22 23:05:30.423223+00', '2026-11-22 23:05:30.426732+00', '2026-11-22 23:05:30.430966+00', NULL, 'w1', 1, NULL, 1, NULL, NULL, 2, true, '466b542027f96c41', NULL, 3);
INSERT INTO public.attempts VALUES (5, 4, 3, 2, '0c9b1af07bbb3554ee73a0b5da0136abed693593f4ae4695e1933a6fb07d6471', 'ddp-late', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'cpu', 'cpu', 'interactive', 'queued', false, '2026-11-22 23:05:30.497639+00', '2026-11-22 23:05:30.497639+00', NULL, NULL, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, true, NULL, NULL, 1);
INSERT INTO public.blobs VALUES ('31b0ac93b0651300f92449e01f249e189106616cd451bace8e37291dd9bde50a', 11, '\x61207265706f72742000ff', '2026-11-22 23:05:30.429839+00');
INSERT INTO public.certificates VALUES (1, 'Od0h8zOKgYvNvWT3wlUmkQ', 1, 3, '2026-11-22 23:05:30.461978+00', NULL);
INSERT INTO public.comments VALUES (1, 3, 1, 'train.py', 3, 'see line 3', '2026-11-22 23:05:30.418998+00');
INSERT INTO public.course_tasks VALUES (1, 1, 'ddp-toy', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'ddp-toy', 'cpu', 'cpu', 1, 1, true, NULL, '2020-01-01 00:00:00+00', 'reduced', 0.25, NULL, NULL, NULL, NULL, false, NULL);
INSERT INTO public.course_tasks VALUES (2, 1, 'ddp-late', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'ddp-late', 'cpu', 'cpu', 2, 1, true, NULL, '2020-01-01 00:00:00+00', 'accepted', 0, NULL, NULL, NULL, NULL, false, NULL);
INSERT INTO public.course_tasks VALUES (3, 1, 'ddp-gone', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'ddp-gone', 'cpu', 'cpu', 3, 1, true, NULL, NULL, 'closed', 0, NULL, NULL, NULL, NULL, false, NULL);
INSERT INTO public.courses VALUES (1, 'ddp', 'Distributed training', '2026-11-22 23:05:30.316261+00', NULL, 'Europe/Berlin');
INSERT INTO public.enrolments VALUES (1, 1, 1, 'instructor', '2026-11-22 23:05:30.326365+00');
INSERT INTO public.enrolments VALUES (2, 1, 2, 'learner', '2026-11-22 23:05:30.330719+00');
INSERT INTO public.enrolments VALUES (3, 1, 3, 'learner', '2026-11-22 23:05:30.33418+00');
INSERT INTO public.events VALUES (1, NULL, 0, 'course:1', 'course_added', '2026-11-22 23:05:30.318509+00', NULL, '{}');
INSERT INTO public.events VALUES (2, NULL, 0, 'person:1', 'person_added', '2026-11-22 23:05:30.322241+00', NULL, '{"role":"instructor"}');
INSERT INTO public.events VALUES (3, NULL, 0, 'course:1', 'enrolled', '2026-11-22 23:05:30.327352+00', NULL, '{"person_id":1,"role":"instructor"}');
INSERT INTO public.events VALUES (4, NULL, 0, 'person:2', 'person_added', '2026-11-22 23:05:30.32891+00', NULL, '{"role":"learner"}');
INSERT INTO public.events VALUES (5, NULL, 0, 'course:1', 'enrolled', '2026-11-22 23:05:30.331269+00', NULL, '{"person_id":2,"role":"learner"}');
INSERT INTO public.events VALUES (6, NULL, 0, 'person:3', 'person_added', '2026-11-22 23:05:30.332526+00', NULL, '{"role":"learner"}');
INSERT INTO public.events VALUES (7, NULL, 0, 'course:1', 'enrolled', '2026-11-22 23:05:30.334688+00', NULL, '{"person_id":3,"role":"learner"}');
INSERT INTO public.events VALUES (8, NULL, 0, 'course:1', 'task_set', '2026-11-22 23:05:30.341082+00', NULL, '{"task":"ddp-toy","version":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}');
INSERT INTO public.events VALUES (9, 1, 1, NULL, 'queued', '2026-11-22 23:05:30.351249+00', 2, '{"lane":"interactive"}');
INSERT INTO public.events VALUES (10, 1, 2, NULL, 'claimed', '2026-11-22 23:05:30.360656+00', NULL, '{"worker":"w1","tries":1}');
INSERT INTO public.events VALUES (11, 1, 3, NULL, 'judged', '2026-11-22 23:05:30.369086+00', NULL, '{"verdict":"rejected","points":40.0}');
INSERT INTO public.events VALUES (12, 2, 1, NULL, 'queued', '2026-11-22 23:05:30.383609+00', 2, '{"lane":"interactive"}');
INSERT INTO public.events VALUES (13, 2, 2, NULL, 'claimed', '2026-11-22 23:05:30.386777+00', NULL, '{"worker":"w1","tries":1}');
INSERT INTO public.events VALUES (14, 2, 3, NULL, 'judged', '2026-11-22 23:05:30.390929+00', NULL, '{"verdict":"rejected","points":70.0}');
INSERT INTO public.events VALUES (15, 3, 1, NULL, 'queued', '2026-11-22 23:05:30.399134+00', 3, '{"lane":"interactive"}');
INSERT INTO public.events VALUES (16, 3, 2, NULL, 'claimed', '2026-11-22 23:05:30.403513+00', NULL, '{"worker":"w1","tries":1}');
INSERT INTO public.events VALUES (17, 3, 3, NULL, 'judged', '2026-11-22 23:05:30.406629+00', NULL, '{"verdict":"rejected","points":90.0}');
INSERT INTO public.events VALUES (18, 3, 4, NULL, 'overridden', '2026-11-22 23:05:30.413823+00', 1, '{"verdict":"accepted","points":95.0,"reason":"a fair approach"}');
INSERT INTO public.events VALUES (19, 3, 5, NULL, 'commented', '2026-11-22 23:05:30.419814+00', 1, '{"comment_id":1}');
INSERT INTO public.events VALUES (20, 4, 1, NULL, 'queued', '2026-11-22 23:05:30.423783+00', 1, '{"lane":"regrade"}');
INSERT INTO public.events VALUES (21, NULL, 0, 'regrade:466b542027f96c41', 'regrade_asked', '2026-11-22 23:05:30.424646+00', 1, '{"number":1}');
INSERT INTO public.events VALUES (22, 4, 2, NULL, 'claimed', '2026-11-22 23:05:30.427164+00', NULL, '{"worker":"w1","tries":1}');
INSERT INTO public.events VALUES (23, 4, 3, NULL, 'judged', '2026-11-22 23:05:30.432578+00', NULL, '{"verdict":"rejected","points":60.0}');
INSERT INTO public.events VALUES (24, NULL, 0, 'regrade:466b542027f96c41', 'regrade_applied', '2026-11-22 23:05:30.453489+00', 1, '{"number":1}');
INSERT INTO public.events VALUES (25, NULL, 0, 'course:1', 'certified', '2026-11-22 23:05:30.463099+00', 3, '{"person_id":3}');
INSERT INTO public.events VALUES (26, NULL, 0, 'course:1', 'task_set', '2026-11-22 23:05:30.476724+00', NULL, '{"task":"ddp-toy","version":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}');
INSERT INTO public.events VALUES (27, NULL, 0, 'course:1', 'task_set', '2026-11-22 23:05:30.484789+00', NULL, '{"task":"ddp-late","version":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}');
INSERT INTO public.events VALUES (28, NULL, 0, 'course:1', 'due_date_moved', '2026-11-22 23:05:30.494926+00', 1, '{"course_task_id":1,"person_id":2,"due_at":"2021-01-01T00:00:00+00:00","reason":"ill"}');
INSERT INTO public.events VALUES (29, 5, 1, NULL, 'queued', '2026-11-22 23:05:30.498043+00', 3, '{"lane":"interactive"}');
INSERT INTO public.events VALUES (30, NULL, 0, 'queue', 'paused', '2026-11-22 23:05:30.504535+00', 1, '{"gate":"gpu1","reason":"a fan is broken"}');
INSERT INTO public.events VALUES (31, NULL, 0, 'course:1', 'invited', '2026-11-22 23:05:30.512894+00', 1, '{"role":"learner"}');
INSERT INTO public.events VALUES (32, NULL, 0, 'person:2', 'token_issued', '2026-11-22 23:05:30.515447+00', 2, '{"token_id":1,"scope":"submit"}');
INSERT INTO public.events VALUES (33, NULL, 0, 'course:1', 'time_zone_set', '2026-11-22 23:05:30.517259+00', 1, '{"time_zone":"Europe/Berlin"}');
INSERT INTO public.events VALUES (34, NULL, 0, 'course:1', 'task_set', '2026-11-22 23:05:30.520088+00', NULL, '{"task":"ddp-gone","version":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}');
INSERT INTO public.extensions VALUES (1, 2, 1, '2021-01-01 00:00:00+00', 'ill');
INSERT INTO public.gates VALUES ('gpu1', '2026-11-22 23:05:30.503694+00', 1, 'a fan is broken');
INSERT INTO public.grade_codes VALUES (1, 'DATA002', 'error', 1, 2);
INSERT INTO public.grade_codes VALUES (2, 'GRAD001', 'error', 1, 2);
INSERT INTO public.grades VALUES (1, 'rejected', 40, 100, '{
  "schema": 1,
  "verdict": "rejected",
  "points": 40.0,
  "submission": "train"
}
', '2026-11-22 23:05:30.36734+00');
INSERT INTO public.grades VALUES (2, 'rejected', 70, 100, '{
  "schema": 1,
  "verdict": "rejected",
  "points": 70.0,
  "submission": "train"
}
', '2026-11-22 23:05:30.390235+00');
INSERT INTO public.grades VALUES (3, 'rejected', 90, 100, '{
  "schema": 1,
  "verdict": "rejected",
  "points": 90.0,
  "submission": "train"
}
', '2026-11-22 23:05:30.406296+00');
INSERT INTO public.grades VALUES (4, 'rejected', 60, 100, '{
  "schema": 1,
  "verdict": "rejected",
  "points": 60.0,
  "submission": "train"
}
', '2026-11-22 23:05:30.431538+00');
INSERT INTO public.invitations VALUES (1, 1, 'W2T4NUSF', 'learner', NULL, 3, 0, NULL);
INSERT INTO public.outbox VALUES (1, 'attempt', 1, '2026-11-22 23:05:30.352223+00', NULL, NULL, 0);
INSERT INTO public.outbox VALUES (2, 'attempt', 2, '2026-11-22 23:05:30.383968+00', NULL, NULL, 0);
INSERT INTO public.outbox VALUES (3, 'attempt', 3, '2026-11-22 23:05:30.399428+00', NULL, NULL, 0);
INSERT INTO public.outbox VALUES (4, 'attempt', 4, '2026-11-22 23:05:30.42408+00', NULL, NULL, 0);
INSERT INTO public.outbox VALUES (5, 'attempt', 5, '2026-11-22 23:05:30.498344+00', NULL, NULL, 0);
INSERT INTO public.overrides VALUES (1, 3, 1, 'accepted', 95, 'a fair approach', '2026-11-22 23:05:30.413133+00', NULL);
INSERT INTO public.people VALUES (1, 'ines', 'Ines', 'instructor', NULL, false, 0, '2026-11-22 23:05:30.32133+00', NULL);
INSERT INTO public.people VALUES (2, 'anna', 'Anna', 'learner', NULL, false, 0, '2026-11-22 23:05:30.328322+00', NULL);
INSERT INTO public.people VALUES (3, 'ben', 'Ben', 'learner', NULL, false, 0, '2026-11-22 23:05:30.332027+00', NULL);
INSERT INTO public.sources VALUES ('2bbeebd675fc08b6f9468ed28c4dbb59841965477397abc014665c2177594c11', '[["train.py","print(0)\n"]]', 9);
INSERT INTO public.sources VALUES ('b33d13b91c4ae926e23b4a1bec11f01f7c250da8f81a8e8e67bb84d8c27ffc92', '[["train.py","print(1)\n"]]', 9);
INSERT INTO public.sources VALUES ('e01692286d124cbbd87afa8da52bf7c94438461df0216a7a6231ebebeeec05b5', '[["train.py","print(2)\n"]]', 9);
INSERT INTO public.sources VALUES ('0c9b1af07bbb3554ee73a0b5da0136abed693593f4ae4695e1933a6fb07d6471', '[["train.py","print(3)\n"]]', 9);
INSERT INTO public.standings VALUES (1, 2, 1, 0, 100, 'rejected', 2152, false);
INSERT INTO public.standings VALUES (1, 3, 3, 95, 100, 'accepted', 2518, true);
INSERT INTO public.submissions VALUES (1, 2, 1, '2bbeebd675fc08b6f9468ed28c4dbb59841965477397abc014665c2177594c11', 'train', '2026-11-22 23:05:30.343847+00', NULL);
INSERT INTO public.submissions VALUES (2, 2, 1, 'b33d13b91c4ae926e23b4a1bec11f01f7c250da8f81a8e8e67bb84d8c27ffc92', 'train', '2026-11-22 23:05:30.381335+00', NULL);
INSERT INTO public.submissions VALUES (3, 3, 1, 'e01692286d124cbbd87afa8da52bf7c94438461df0216a7a6231ebebeeec05b5', 'train', '2026-11-22 23:05:30.397014+00', NULL);
INSERT INTO public.submissions VALUES (4, 3, 2, '0c9b1af07bbb3554ee73a0b5da0136abed693593f4ae4695e1933a6fb07d6471', 'train', '2026-11-22 23:05:30.49606+00', NULL);
INSERT INTO public.turns VALUES (2, 'interactive', 2);
INSERT INTO public.turns VALUES (3, 'interactive', 3);
INSERT INTO public.turns VALUES (2, 'regrade', 1);
INSERT INTO public.workers VALUES ('w1', '["cpu"]', 1, '2026-11-22 23:05:30.501906+00', false, '{"num_gpus":2,"num_leases":null,"num_waiting":null,"num_containers":4}');
SELECT pg_catalog.setval('public.api_tokens_id_seq', 1, true);
SELECT pg_catalog.setval('public.attempts_id_seq', 5, true);
SELECT pg_catalog.setval('public.certificates_id_seq', 1, true);
SELECT pg_catalog.setval('public.comments_id_seq', 1, true);
SELECT pg_catalog.setval('public.course_tasks_id_seq', 3, true);
SELECT pg_catalog.setval('public.courses_id_seq', 1, true);
SELECT pg_catalog.setval('public.enrolments_id_seq', 3, true);
SELECT pg_catalog.setval('public.events_id_seq', 34, true);
SELECT pg_catalog.setval('public.extensions_id_seq', 1, true);
SELECT pg_catalog.setval('public.invitations_id_seq', 1, true);
SELECT pg_catalog.setval('public.outbox_id_seq', 5, true);
SELECT pg_catalog.setval('public.overrides_id_seq', 1, true);
SELECT pg_catalog.setval('public.people_id_seq', 3, true);
SELECT pg_catalog.setval('public.submissions_id_seq', 4, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT pk_api_tokens PRIMARY KEY (id);
ALTER TABLE ONLY public.artifacts
    ADD CONSTRAINT pk_artifacts PRIMARY KEY (attempt_id, name);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT pk_attempts PRIMARY KEY (id);
ALTER TABLE ONLY public.blobs
    ADD CONSTRAINT pk_blobs PRIMARY KEY (digest);
ALTER TABLE ONLY public.certificates
    ADD CONSTRAINT pk_certificates PRIMARY KEY (id);
ALTER TABLE ONLY public.comments
    ADD CONSTRAINT pk_comments PRIMARY KEY (id);
ALTER TABLE ONLY public.course_tasks
    ADD CONSTRAINT pk_course_tasks PRIMARY KEY (id);
ALTER TABLE ONLY public.courses
    ADD CONSTRAINT pk_courses PRIMARY KEY (id);
ALTER TABLE ONLY public.enrolments
    ADD CONSTRAINT pk_enrolments PRIMARY KEY (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT pk_events PRIMARY KEY (id);
ALTER TABLE ONLY public.extensions
    ADD CONSTRAINT pk_extensions PRIMARY KEY (id);
ALTER TABLE ONLY public.gates
    ADD CONSTRAINT pk_gates PRIMARY KEY (name);
ALTER TABLE ONLY public.grade_codes
    ADD CONSTRAINT pk_grade_codes PRIMARY KEY (attempt_id, code);
ALTER TABLE ONLY public.grades
    ADD CONSTRAINT pk_grades PRIMARY KEY (attempt_id);
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT pk_invitations PRIMARY KEY (id);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT pk_outbox PRIMARY KEY (id);
ALTER TABLE ONLY public.overrides
    ADD CONSTRAINT pk_overrides PRIMARY KEY (id);
ALTER TABLE ONLY public.people
    ADD CONSTRAINT pk_people PRIMARY KEY (id);
ALTER TABLE ONLY public.sources
    ADD CONSTRAINT pk_sources PRIMARY KEY (digest);
ALTER TABLE ONLY public.standings
    ADD CONSTRAINT pk_standings PRIMARY KEY (course_task_id, person_id);
ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT pk_submissions PRIMARY KEY (id);
ALTER TABLE ONLY public.turns
    ADD CONSTRAINT pk_turns PRIMARY KEY (person_id, lane);
ALTER TABLE ONLY public.workers
    ADD CONSTRAINT pk_workers PRIMARY KEY (name);
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT uq_api_tokens_token_hash UNIQUE (token_hash);
ALTER TABLE ONLY public.certificates
    ADD CONSTRAINT uq_certificates_course_id_person_id UNIQUE (course_id, person_id);
ALTER TABLE ONLY public.certificates
    ADD CONSTRAINT uq_certificates_public_id UNIQUE (public_id);
ALTER TABLE ONLY public.course_tasks
    ADD CONSTRAINT uq_course_tasks_course_id_task_profile UNIQUE (course_id, task, profile);
ALTER TABLE ONLY public.courses
    ADD CONSTRAINT uq_courses_name UNIQUE (name);
ALTER TABLE ONLY public.enrolments
    ADD CONSTRAINT uq_enrolments_course_id_person_id UNIQUE (course_id, person_id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT uq_events_attempt_id_seq UNIQUE (attempt_id, seq);
ALTER TABLE ONLY public.extensions
    ADD CONSTRAINT uq_extensions_enrolment_id_course_task_id UNIQUE (enrolment_id, course_task_id);
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT uq_invitations_code UNIQUE (code);
ALTER TABLE ONLY public.people
    ADD CONSTRAINT uq_people_login UNIQUE (login);
ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT uq_submissions_person_id_idempotency_key UNIQUE (person_id, idempotency_key);
CREATE INDEX ix_api_tokens_person_id ON public.api_tokens USING btree (person_id);
CREATE INDEX ix_artifacts_digest ON public.artifacts USING btree (digest);
CREATE INDEX ix_attempts_batch ON public.attempts USING btree (batch);
CREATE INDEX ix_attempts_cached_from ON public.attempts USING btree (cached_from);
CREATE INDEX ix_attempts_leases ON public.attempts USING btree (lease_until) WHERE ((state)::text = 'running'::text);
CREATE INDEX ix_attempts_measured ON public.attempts USING btree (course_task_id, need, finished_at);
CREATE INDEX ix_attempts_of_person ON public.attempts USING btree (person_id, course_task_id, id);
CREATE INDEX ix_attempts_of_task ON public.attempts USING btree (course_task_id, person_id, id);
CREATE INDEX ix_attempts_regrade_of ON public.attempts USING btree (regrade_of);
CREATE INDEX ix_attempts_same ON public.attempts USING btree (digest, task_version, profile);
CREATE INDEX ix_attempts_submission_id ON public.attempts USING btree (submission_id);
CREATE INDEX ix_attempts_waiting ON public.attempts USING btree (lane, need, person_id, id) WHERE ((state)::text = 'queued'::text);
CREATE INDEX ix_certificates_person_id ON public.certificates USING btree (person_id);
CREATE INDEX ix_comments_attempt_id ON public.comments USING btree (attempt_id);
CREATE INDEX ix_comments_author_id ON public.comments USING btree (author_id);
CREATE INDEX ix_enrolments_person_id ON public.enrolments USING btree (person_id);
CREATE INDEX ix_events_actor_id ON public.events USING btree (actor_id);
CREATE INDEX ix_events_subject ON public.events USING btree (subject, id);
CREATE INDEX ix_extensions_course_task_id ON public.extensions USING btree (course_task_id);
CREATE INDEX ix_gates_actor_id ON public.gates USING btree (actor_id);
CREATE INDEX ix_grade_codes_class ON public.grade_codes USING btree (course_task_id, code, person_id, severity);
CREATE INDEX ix_grade_codes_person_id ON public.grade_codes USING btree (person_id);
CREATE INDEX ix_invitations_course_id ON public.invitations USING btree (course_id);
CREATE INDEX ix_outbox_attempt_id ON public.outbox USING btree (attempt_id);
CREATE INDEX ix_outbox_unsent ON public.outbox USING btree (id) WHERE (sent_at IS NULL);
CREATE INDEX ix_overrides_actor_id ON public.overrides USING btree (actor_id);
CREATE INDEX ix_overrides_attempt_id ON public.overrides USING btree (attempt_id);
CREATE INDEX ix_standings_attempt_id ON public.standings USING btree (attempt_id);
CREATE INDEX ix_standings_of_person ON public.standings USING btree (person_id);
CREATE INDEX ix_submissions_course_task_id ON public.submissions USING btree (course_task_id);
CREATE INDEX ix_submissions_digest ON public.submissions USING btree (digest);
CREATE INDEX ix_turns_last ON public.turns USING btree (lane, turn);
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT fk_api_tokens_person_id FOREIGN KEY (person_id) REFERENCES public.people(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.artifacts
    ADD CONSTRAINT fk_artifacts_attempt_id FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT fk_attempts_cached_from FOREIGN KEY (cached_from) REFERENCES public.attempts(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT fk_attempts_course_task_id FOREIGN KEY (course_task_id) REFERENCES public.course_tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT fk_attempts_person_id FOREIGN KEY (person_id) REFERENCES public.people(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT fk_attempts_regrade_of FOREIGN KEY (regrade_of) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT fk_attempts_submission_id FOREIGN KEY (submission_id) REFERENCES public.submissions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.certificates
    ADD CONSTRAINT fk_certificates_course_id FOREIGN KEY (course_id) REFERENCES public.courses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.certificates
    ADD CONSTRAINT fk_certificates_person_id FOREIGN KEY (person_id) REFERENCES public.people(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.comments
    ADD CONSTRAINT fk_comments_attempt_id FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.comments
    ADD CONSTRAINT fk_comments_author_id FOREIGN KEY (author_id) REFERENCES public.people(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.course_tasks
    ADD CONSTRAINT fk_course_tasks_course_id FOREIGN KEY (course_id) REFERENCES public.courses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.enrolments
    ADD CONSTRAINT fk_enrolments_course_id FOREIGN KEY (course_id) REFERENCES public.courses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.enrolments
    ADD CONSTRAINT fk_enrolments_person_id FOREIGN KEY (person_id) REFERENCES public.people(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.events
    ADD CONSTRAINT fk_events_actor_id FOREIGN KEY (actor_id) REFERENCES public.people(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.events
    ADD CONSTRAINT fk_events_attempt_id FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.extensions
    ADD CONSTRAINT fk_extensions_course_task_id FOREIGN KEY (course_task_id) REFERENCES public.course_tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.extensions
    ADD CONSTRAINT fk_extensions_enrolment_id FOREIGN KEY (enrolment_id) REFERENCES public.enrolments(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.gates
    ADD CONSTRAINT fk_gates_actor_id FOREIGN KEY (actor_id) REFERENCES public.people(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.grade_codes
    ADD CONSTRAINT fk_grade_codes_attempt_id FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.grade_codes
    ADD CONSTRAINT fk_grade_codes_course_task_id FOREIGN KEY (course_task_id) REFERENCES public.course_tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.grade_codes
    ADD CONSTRAINT fk_grade_codes_person_id FOREIGN KEY (person_id) REFERENCES public.people(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.grades
    ADD CONSTRAINT fk_grades_attempt_id FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT fk_invitations_course_id FOREIGN KEY (course_id) REFERENCES public.courses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT fk_outbox_attempt_id FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.overrides
    ADD CONSTRAINT fk_overrides_actor_id FOREIGN KEY (actor_id) REFERENCES public.people(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.overrides
    ADD CONSTRAINT fk_overrides_attempt_id FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.standings
    ADD CONSTRAINT fk_standings_attempt_id FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.standings
    ADD CONSTRAINT fk_standings_course_task_id FOREIGN KEY (course_task_id) REFERENCES public.course_tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.standings
    ADD CONSTRAINT fk_standings_person_id FOREIGN KEY (person_id) REFERENCES public.people(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT fk_submissions_course_task_id FOREIGN KEY (course_task_id) REFERENCES public.course_tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT fk_submissions_digest FOREIGN KEY (digest) REFERENCES public.sources(digest);
ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT fk_submissions_person_id FOREIGN KEY (person_id) REFERENCES public.people(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.turns
    ADD CONSTRAINT fk_turns_person_id FOREIGN KEY (person_id) REFERENCES public.people(id) ON DELETE CASCADE;
