BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0006');
CREATE TABLE api_tokens (
	id INTEGER NOT NULL,
	person_id INTEGER NOT NULL,
	name VARCHAR(120) NOT NULL,
	token_hash VARCHAR(64) NOT NULL,
	prefix VARCHAR(16) NOT NULL,
	scope VARCHAR(16) NOT NULL,
	created_at DATETIME NOT NULL,
	expires_at DATETIME,
	revoked_at DATETIME,
	used_at DATETIME,
	CONSTRAINT pk_api_tokens PRIMARY KEY (id),
	CONSTRAINT fk_api_tokens_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE,
	CONSTRAINT uq_api_tokens_token_hash UNIQUE (token_hash),
	CONSTRAINT ck_api_tokens_scope CHECK (scope IN ('read', 'submit', 'verify', 'manage'))
);
INSERT INTO "api_tokens" VALUES(1,2,'laptop','aee41bac569f7ae09e49502029e3afdb9fb5cd77f7627eb26b012f7789f28fdd','grd_3KkN','submit','2026-11-22 23:05:28.963000',NULL,NULL,NULL);
CREATE TABLE artifacts (
	attempt_id INTEGER NOT NULL,
	name VARCHAR(200) NOT NULL,
	digest VARCHAR(64) NOT NULL,
	size INTEGER NOT NULL,
	CONSTRAINT pk_artifacts PRIMARY KEY (attempt_id, name),
	CONSTRAINT fk_artifacts_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE
);
INSERT INTO "artifacts" VALUES(4,'report.html','31b0ac93b0651300f92449e01f249e189106616cd451bace8e37291dd9bde50a',11);
CREATE TABLE attempts (
	id INTEGER NOT NULL,
	submission_id INTEGER NOT NULL,
	person_id INTEGER NOT NULL,
	course_task_id INTEGER NOT NULL,
	digest VARCHAR(64) NOT NULL,
	task VARCHAR(120) NOT NULL,
	task_version VARCHAR(64) NOT NULL,
	profile VARCHAR(40) NOT NULL,
	need VARCHAR(16) NOT NULL,
	lane VARCHAR(16) NOT NULL,
	state VARCHAR(16) NOT NULL,
	forced BOOLEAN NOT NULL,
	queued_at DATETIME NOT NULL,
	available_at DATETIME NOT NULL,
	claimed_at DATETIME,
	finished_at DATETIME,
	phase VARCHAR(40),
	worker VARCHAR(120),
	lease_token INTEGER NOT NULL,
	lease_until DATETIME,
	tries INTEGER NOT NULL,
	cancel_requested_at DATETIME,
	cached_from INTEGER,
	regrade_of INTEGER,
	counts BOOLEAN NOT NULL,
	batch VARCHAR(40),
	failure TEXT,
	event_seq INTEGER NOT NULL,
	CONSTRAINT pk_attempts PRIMARY KEY (id),
	CONSTRAINT fk_attempts_cached_from FOREIGN KEY(cached_from) REFERENCES attempts (id) ON DELETE SET NULL,
	CONSTRAINT fk_attempts_course_task_id FOREIGN KEY(course_task_id) REFERENCES course_tasks (id) ON DELETE CASCADE,
	CONSTRAINT fk_attempts_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE,
	CONSTRAINT fk_attempts_regrade_of FOREIGN KEY(regrade_of) REFERENCES attempts (id) ON DELETE CASCADE,
	CONSTRAINT fk_attempts_submission_id FOREIGN KEY(submission_id) REFERENCES submissions (id) ON DELETE CASCADE,
	CONSTRAINT ck_attempts_lane CHECK (lane IN ('interactive', 'regrade')),
	CONSTRAINT ck_attempts_attemptstate CHECK (state IN ('queued', 'running', 'judged', 'failed', 'cancelled'))
);
INSERT INTO "attempts" VALUES(1,1,2,1,'2bbeebd675fc08b6f9468ed28c4dbb59841965477397abc014665c2177594c11','ddp-toy','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','cpu','cpu','interactive','judged',0,'2026-11-22 23:05:28.502000','2026-11-22 23:05:28.502000','2026-11-22 23:05:28.531000','2026-11-22 23:05:28.548000',NULL,'w1',1,NULL,1,NULL,NULL,NULL,1,NULL,NULL,3);
INSERT INTO "attempts" VALUES(2,2,2,1,'b33d13b91c4ae926e23b4a1bec11f01f7c250da8f81a8e8e67bb84d8c27ffc92','ddp-toy','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','cpu','cpu','interactive','judged',0,'2026-11-22 23:05:28.574000','2026-11-22 23:05:28.574000','2026-11-22 23:05:28.582000','2026-11-22 23:05:28.590000',NULL,'w1',1,NULL,1,NULL,NULL,NULL,1,NULL,NULL,3);
INSERT INTO "attempts" VALUES(3,3,3,1,'e01692286d124cbbd87afa8da52bf7c94438461df0216a7a6231ebebeeec05b5','ddp-toy','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','cpu','cpu','interactive','judged',0,'2026-11-22 23:05:28.604000','2026-11-22 23:05:28.604000','2026-11-22 23:05:28.616000','2026-11-22 23:05:28.628000',NULL,'w1',1,NULL,1,NULL,NULL,NULL,1,NULL,NULL,5);
INSERT INTO "attempts" VALUES(4,2,2,1,'b33d13b91c4ae926e23b4a1bec11f01f7c250da8f81a8e8e67bb84d8c27ffc92','ddp-toy','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','cpu','cpu','regrade','judged',1,'2026-11-22 23:05:28.808000','2026-11-22 23:05:28.808000','2026-11-22 23:05:28.819000','2026-11-22 23:05:28.831000',NULL,'w1',1,NULL,1,NULL,NULL,2,1,'e8cbbc31efa9e26c',NULL,3);
INSERT INTO "attempts" VALUES(5,4,3,2,'0c9b1af07bbb3554ee73a0b5da0136abed693593f4ae4695e1933a6fb07d6471','ddp-late','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','cpu','cpu','interactive','queued',0,'2026-11-22 23:05:28.931000','2026-11-22 23:05:28.931000',NULL,NULL,NULL,NULL,0,NULL,0,NULL,NULL,NULL,1,NULL,NULL,1);
CREATE TABLE blobs (
	digest VARCHAR(64) NOT NULL,
	size INTEGER NOT NULL,
	data BLOB NOT NULL,
	created_at DATETIME NOT NULL,
	CONSTRAINT pk_blobs PRIMARY KEY (digest)
);
INSERT INTO "blobs" VALUES('31b0ac93b0651300f92449e01f249e189106616cd451bace8e37291dd9bde50a',11,X'61207265706F72742000FF','2026-11-22 23:05:28.829000');
CREATE TABLE certificates (
	id INTEGER NOT NULL,
	public_id VARCHAR(40) NOT NULL,
	course_id INTEGER NOT NULL,
	person_id INTEGER NOT NULL,
	issued_at DATETIME NOT NULL,
	revoked_at DATETIME,
	CONSTRAINT pk_certificates PRIMARY KEY (id),
	CONSTRAINT fk_certificates_course_id FOREIGN KEY(course_id) REFERENCES courses (id) ON DELETE CASCADE,
	CONSTRAINT fk_certificates_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE,
	CONSTRAINT uq_certificates_course_id_person_id UNIQUE (course_id, person_id),
	CONSTRAINT uq_certificates_public_id UNIQUE (public_id)
);
INSERT INTO "certificates" VALUES(1,'O6nAUY5Qn5NYgKyLW29FPA',1,3,'2026-11-22 23:05:28.861000',NULL);
CREATE TABLE comments (
	id INTEGER NOT NULL,
	attempt_id INTEGER NOT NULL,
	author_id INTEGER,
	path VARCHAR(300),
	line INTEGER,
	text TEXT NOT NULL,
	created_at DATETIME NOT NULL,
	CONSTRAINT pk_comments PRIMARY KEY (id),
	CONSTRAINT fk_comments_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE,
	CONSTRAINT fk_comments_author_id FOREIGN KEY(author_id) REFERENCES people (id) ON DELETE SET NULL
);
INSERT INTO "comments" VALUES(1,3,1,'train.py',3,'see line 3','2026-11-22 23:05:28.800000');
CREATE TABLE course_tasks (
	id INTEGER NOT NULL,
	course_id INTEGER NOT NULL,
	task VARCHAR(120) NOT NULL,
	version VARCHAR(64) NOT NULL,
	title VARCHAR(200) NOT NULL,
	profile VARCHAR(40) NOT NULL,
	need VARCHAR(16) NOT NULL,
	position INTEGER NOT NULL,
	weight DOUBLE NOT NULL,
	required BOOLEAN NOT NULL,
	opens_at DATETIME,
	due_at DATETIME,
	late_policy VARCHAR(16) NOT NULL,
	late_loss DOUBLE NOT NULL,
	late_days INTEGER,
	max_per_day INTEGER,
	max_total INTEGER,
	max_concurrent INTEGER,
	hidden_until_due BOOLEAN NOT NULL, withdrawn_at DATETIME,
	CONSTRAINT pk_course_tasks PRIMARY KEY (id),
	CONSTRAINT fk_course_tasks_course_id FOREIGN KEY(course_id) REFERENCES courses (id) ON DELETE CASCADE,
	CONSTRAINT uq_course_tasks_course_id_task_profile UNIQUE (course_id, task, profile),
	CONSTRAINT ck_course_tasks_latepolicy CHECK (late_policy IN ('closed', 'accepted', 'reduced'))
);
INSERT INTO "course_tasks" VALUES(1,1,'ddp-toy','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','ddp-toy','cpu','cpu',1,1.0,1,NULL,'2020-01-01 00:00:00.000000','reduced',0.25,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "course_tasks" VALUES(2,1,'ddp-late','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','ddp-late','cpu','cpu',2,1.0,1,NULL,'2020-01-01 00:00:00.000000','accepted',0.0,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "course_tasks" VALUES(3,1,'ddp-gone','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','ddp-gone','cpu','cpu',3,1.0,1,NULL,NULL,'closed',0.0,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE courses (
	id INTEGER NOT NULL,
	name VARCHAR(120) NOT NULL,
	title VARCHAR(200) NOT NULL,
	created_at DATETIME NOT NULL,
	closed_at DATETIME, time_zone VARCHAR(64),
	CONSTRAINT pk_courses PRIMARY KEY (id),
	CONSTRAINT uq_courses_name UNIQUE (name)
);
INSERT INTO "courses" VALUES(1,'ddp','Distributed training','2026-11-22 23:05:28.397000',NULL,'Europe/Berlin');
CREATE TABLE enrolments (
	id INTEGER NOT NULL,
	course_id INTEGER NOT NULL,
	person_id INTEGER NOT NULL,
	role VARCHAR(16) NOT NULL,
	created_at DATETIME NOT NULL,
	CONSTRAINT pk_enrolments PRIMARY KEY (id),
	CONSTRAINT fk_enrolments_course_id FOREIGN KEY(course_id) REFERENCES courses (id) ON DELETE CASCADE,
	CONSTRAINT fk_enrolments_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE,
	CONSTRAINT uq_enrolments_course_id_person_id UNIQUE (course_id, person_id),
	CONSTRAINT ck_enrolments_role CHECK (role IN ('learner', 'instructor', 'admin', 'ci'))
);
INSERT INTO "enrolments" VALUES(1,1,1,'instructor','2026-11-22 23:05:28.441000');
INSERT INTO "enrolments" VALUES(2,1,2,'learner','2026-11-22 23:05:28.453000');
INSERT INTO "enrolments" VALUES(3,1,3,'learner','2026-11-22 23:05:28.467000');
CREATE TABLE events (
	id INTEGER NOT NULL,
	attempt_id INTEGER,
	seq INTEGER NOT NULL,
	subject VARCHAR(80),
	kind VARCHAR(40) NOT NULL,
	at DATETIME NOT NULL,
	actor_id INTEGER,
	data TEXT NOT NULL,
	CONSTRAINT pk_events PRIMARY KEY (id),
	CONSTRAINT fk_events_actor_id FOREIGN KEY(actor_id) REFERENCES people (id) ON DELETE SET NULL,
	CONSTRAINT fk_events_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE,
	CONSTRAINT uq_events_attempt_id_seq UNIQUE (attempt_id, seq)
);
INSERT INTO "events" VALUES(1,NULL,0,'course:1','course_added','2026-11-22 23:05:28.403000',NULL,'{}');
INSERT INTO "events" VALUES(2,NULL,0,'person:1','person_added','2026-11-22 23:05:28.412000',NULL,'{"role":"instructor"}');
INSERT INTO "events" VALUES(3,NULL,0,'course:1','enrolled','2026-11-22 23:05:28.442000',NULL,'{"person_id":1,"role":"instructor"}');
INSERT INTO "events" VALUES(4,NULL,0,'person:2','person_added','2026-11-22 23:05:28.444000',NULL,'{"role":"learner"}');
INSERT INTO "events" VALUES(5,NULL,0,'course:1','enrolled','2026-11-22 23:05:28.454000',NULL,'{"person_id":2,"role":"learner"}');
INSERT INTO "events" VALUES(6,NULL,0,'person:3','person_added','2026-11-22 23:05:28.455000',NULL,'{"role":"learner"}');
INSERT INTO "events" VALUES(7,NULL,0,'course:1','enrolled','2026-11-22 23:05:28.467000',NULL,'{"person_id":3,"role":"learner"}');
INSERT INTO "events" VALUES(8,NULL,0,'course:1','task_set','2026-11-22 23:05:28.480000',NULL,'{"task":"ddp-toy","version":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}');
INSERT INTO "events" VALUES(9,1,1,NULL,'queued','2026-11-22 23:05:28.504000',2,'{"lane":"interactive"}');
INSERT INTO "events" VALUES(10,1,2,NULL,'claimed','2026-11-22 23:05:28.531000',NULL,'{"worker":"w1","tries":1}');
INSERT INTO "events" VALUES(11,1,3,NULL,'judged','2026-11-22 23:05:28.549000',NULL,'{"verdict":"rejected","points":40.0}');
INSERT INTO "events" VALUES(12,2,1,NULL,'queued','2026-11-22 23:05:28.574000',2,'{"lane":"interactive"}');
INSERT INTO "events" VALUES(13,2,2,NULL,'claimed','2026-11-22 23:05:28.583000',NULL,'{"worker":"w1","tries":1}');
INSERT INTO "events" VALUES(14,2,3,NULL,'judged','2026-11-22 23:05:28.590000',NULL,'{"verdict":"rejected","points":70.0}');
INSERT INTO "events" VALUES(15,3,1,NULL,'queued','2026-11-22 23:05:28.604000',3,'{"lane":"interactive"}');
INSERT INTO "events" VALUES(16,3,2,NULL,'claimed','2026-11-22 23:05:28.616000',NULL,'{"worker":"w1","tries":1}');
INSERT INTO "events" VALUES(17,3,3,NULL,'judged','2026-11-22 23:05:28.629000',NULL,'{"verdict":"rejected","points":90.0}');
INSERT INTO "events" VALUES(18,3,4,NULL,'overridden','2026-11-22 23:05:28.649000',1,'{"verdict":"accepted","points":95.0,"reason":"a fair approach"}');
INSERT INTO "events" VALUES(19,3,5,NULL,'commented','2026-11-22 23:05:28.800000',1,'{"comment_id":1}');
INSERT INTO "events" VALUES(20,4,1,NULL,'queued','2026-11-22 23:05:28.808000',1,'{"lane":"regrade"}');
INSERT INTO "events" VALUES(21,NULL,0,'regrade:e8cbbc31efa9e26c','regrade_asked','2026-11-22 23:05:28.808000',1,'{"number":1}');
INSERT INTO "events" VALUES(22,4,2,NULL,'claimed','2026-11-22 23:05:28.819000',NULL,'{"worker":"w1","tries":1}');
INSERT INTO "events" VALUES(23,4,3,NULL,'judged','2026-11-22 23:05:28.831000',NULL,'{"verdict":"rejected","points":60.0}');
INSERT INTO "events" VALUES(24,NULL,0,'regrade:e8cbbc31efa9e26c','regrade_applied','2026-11-22 23:05:28.847000',1,'{"number":1}');
INSERT INTO "events" VALUES(25,NULL,0,'course:1','certified','2026-11-22 23:05:28.865000',3,'{"person_id":3}');
INSERT INTO "events" VALUES(26,NULL,0,'course:1','task_set','2026-11-22 23:05:28.890000',NULL,'{"task":"ddp-toy","version":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}');
INSERT INTO "events" VALUES(27,NULL,0,'course:1','task_set','2026-11-22 23:05:28.900000',NULL,'{"task":"ddp-late","version":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}');
INSERT INTO "events" VALUES(28,NULL,0,'course:1','due_date_moved','2026-11-22 23:05:28.915000',1,'{"course_task_id":1,"person_id":2,"due_at":"2021-01-01T00:00:00+00:00","reason":"ill"}');
INSERT INTO "events" VALUES(29,5,1,NULL,'queued','2026-11-22 23:05:28.931000',3,'{"lane":"interactive"}');
INSERT INTO "events" VALUES(30,NULL,0,'queue','paused','2026-11-22 23:05:28.947000',1,'{"gate":"gpu1","reason":"a fan is broken"}');
INSERT INTO "events" VALUES(31,NULL,0,'course:1','invited','2026-11-22 23:05:28.959000',1,'{"role":"learner"}');
INSERT INTO "events" VALUES(32,NULL,0,'person:2','token_issued','2026-11-22 23:05:28.963000',2,'{"token_id":1,"scope":"submit"}');
INSERT INTO "events" VALUES(33,NULL,0,'course:1','time_zone_set','2026-11-22 23:05:29.003000',1,'{"time_zone":"Europe/Berlin"}');
INSERT INTO "events" VALUES(34,NULL,0,'course:1','task_set','2026-11-22 23:05:29.017000',NULL,'{"task":"ddp-gone","version":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}');
CREATE TABLE extensions (
	id INTEGER NOT NULL,
	enrolment_id INTEGER NOT NULL,
	course_task_id INTEGER NOT NULL,
	due_at DATETIME NOT NULL,
	reason TEXT NOT NULL,
	CONSTRAINT pk_extensions PRIMARY KEY (id),
	CONSTRAINT fk_extensions_course_task_id FOREIGN KEY(course_task_id) REFERENCES course_tasks (id) ON DELETE CASCADE,
	CONSTRAINT fk_extensions_enrolment_id FOREIGN KEY(enrolment_id) REFERENCES enrolments (id) ON DELETE CASCADE,
	CONSTRAINT uq_extensions_enrolment_id_course_task_id UNIQUE (enrolment_id, course_task_id)
);
INSERT INTO "extensions" VALUES(1,2,1,'2021-01-01 00:00:00.000000','ill');
CREATE TABLE gates (
	name VARCHAR(40) NOT NULL,
	since DATETIME NOT NULL,
	actor_id INTEGER,
	reason TEXT NOT NULL,
	CONSTRAINT pk_gates PRIMARY KEY (name),
	CONSTRAINT fk_gates_actor_id FOREIGN KEY(actor_id) REFERENCES people (id) ON DELETE SET NULL
);
INSERT INTO "gates" VALUES('gpu1','2026-11-22 23:05:28.946000',1,'a fan is broken');
CREATE TABLE grade_codes (
	attempt_id INTEGER NOT NULL,
	code VARCHAR(20) NOT NULL,
	severity VARCHAR(16) NOT NULL,
	course_task_id INTEGER NOT NULL,
	person_id INTEGER NOT NULL,
	CONSTRAINT pk_grade_codes PRIMARY KEY (attempt_id, code),
	CONSTRAINT fk_grade_codes_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE,
	CONSTRAINT fk_grade_codes_course_task_id FOREIGN KEY(course_task_id) REFERENCES course_tasks (id) ON DELETE CASCADE,
	CONSTRAINT fk_grade_codes_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE,
	CONSTRAINT ck_grade_codes_severity CHECK (severity IN ('error', 'warning', 'hint', 'review'))
);
INSERT INTO "grade_codes" VALUES(1,'DATA002','error',1,2);
INSERT INTO "grade_codes" VALUES(2,'GRAD001','error',1,2);
CREATE TABLE grades (
	attempt_id INTEGER NOT NULL,
	verdict VARCHAR(16) NOT NULL,
	points DOUBLE NOT NULL,
	max_points DOUBLE NOT NULL,
	document TEXT NOT NULL,
	created_at DATETIME NOT NULL,
	CONSTRAINT pk_grades PRIMARY KEY (attempt_id),
	CONSTRAINT fk_grades_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE,
	CONSTRAINT ck_grades_verdict CHECK (verdict IN ('judge_error', 'held', 'timed_out', 'deadlocked', 'out_of_memory', 'crashed', 'rejected', 'accepted'))
);
INSERT INTO "grades" VALUES(1,'rejected',40.0,100.0,'{
  "schema": 1,
  "verdict": "rejected",
  "points": 40.0,
  "submission": "train"
}
','2026-11-22 23:05:28.549000');
INSERT INTO "grades" VALUES(2,'rejected',70.0,100.0,'{
  "schema": 1,
  "verdict": "rejected",
  "points": 70.0,
  "submission": "train"
}
','2026-11-22 23:05:28.590000');
INSERT INTO "grades" VALUES(3,'rejected',90.0,100.0,'{
  "schema": 1,
  "verdict": "rejected",
  "points": 90.0,
  "submission": "train"
}
','2026-11-22 23:05:28.629000');
INSERT INTO "grades" VALUES(4,'rejected',60.0,100.0,'{
  "schema": 1,
  "verdict": "rejected",
  "points": 60.0,
  "submission": "train"
}
','2026-11-22 23:05:28.831000');
CREATE TABLE invitations (
	id INTEGER NOT NULL,
	course_id INTEGER NOT NULL,
	code VARCHAR(40) NOT NULL,
	role VARCHAR(16) NOT NULL,
	expires_at DATETIME,
	max_uses INTEGER,
	num_uses INTEGER NOT NULL,
	revoked_at DATETIME,
	CONSTRAINT pk_invitations PRIMARY KEY (id),
	CONSTRAINT fk_invitations_course_id FOREIGN KEY(course_id) REFERENCES courses (id) ON DELETE CASCADE,
	CONSTRAINT uq_invitations_code UNIQUE (code),
	CONSTRAINT ck_invitations_role CHECK (role IN ('learner', 'instructor', 'admin', 'ci'))
);
INSERT INTO "invitations" VALUES(1,1,'QTWAQB95','learner',NULL,3,0,NULL);
CREATE TABLE outbox (
	id INTEGER NOT NULL,
	topic VARCHAR(40) NOT NULL,
	attempt_id INTEGER NOT NULL,
	created_at DATETIME NOT NULL,
	taken_until DATETIME,
	sent_at DATETIME,
	tries INTEGER NOT NULL,
	CONSTRAINT pk_outbox PRIMARY KEY (id),
	CONSTRAINT fk_outbox_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE
);
INSERT INTO "outbox" VALUES(1,'attempt',1,'2026-11-22 23:05:28.505000',NULL,NULL,0);
INSERT INTO "outbox" VALUES(2,'attempt',2,'2026-11-22 23:05:28.574000',NULL,NULL,0);
INSERT INTO "outbox" VALUES(3,'attempt',3,'2026-11-22 23:05:28.604000',NULL,NULL,0);
INSERT INTO "outbox" VALUES(4,'attempt',4,'2026-11-22 23:05:28.808000',NULL,NULL,0);
INSERT INTO "outbox" VALUES(5,'attempt',5,'2026-11-22 23:05:28.931000',NULL,NULL,0);
CREATE TABLE overrides (
	id INTEGER NOT NULL,
	attempt_id INTEGER NOT NULL,
	actor_id INTEGER,
	verdict VARCHAR(16) NOT NULL,
	points DOUBLE NOT NULL,
	reason TEXT NOT NULL,
	created_at DATETIME NOT NULL,
	withdrawn_at DATETIME,
	CONSTRAINT pk_overrides PRIMARY KEY (id),
	CONSTRAINT fk_overrides_actor_id FOREIGN KEY(actor_id) REFERENCES people (id) ON DELETE SET NULL,
	CONSTRAINT fk_overrides_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE,
	CONSTRAINT ck_overrides_verdict CHECK (verdict IN ('judge_error', 'held', 'timed_out', 'deadlocked', 'out_of_memory', 'crashed', 'rejected', 'accepted'))
);
INSERT INTO "overrides" VALUES(1,3,1,'accepted',95.0,'a fair approach','2026-11-22 23:05:28.649000',NULL);
CREATE TABLE people (
	id INTEGER NOT NULL,
	login VARCHAR(120) NOT NULL,
	name VARCHAR(200) NOT NULL,
	role VARCHAR(16) NOT NULL,
	password_hash TEXT,
	must_change BOOLEAN NOT NULL,
	session_epoch INTEGER NOT NULL,
	created_at DATETIME NOT NULL,
	disabled_at DATETIME,
	CONSTRAINT pk_people PRIMARY KEY (id),
	CONSTRAINT uq_people_login UNIQUE (login),
	CONSTRAINT ck_people_role CHECK (role IN ('learner', 'instructor', 'admin', 'ci'))
);
INSERT INTO "people" VALUES(1,'ines','Ines','instructor',NULL,0,0,'2026-11-22 23:05:28.411000',NULL);
INSERT INTO "people" VALUES(2,'anna','Anna','learner',NULL,0,0,'2026-11-22 23:05:28.444000',NULL);
INSERT INTO "people" VALUES(3,'ben','Ben','learner',NULL,0,0,'2026-11-22 23:05:28.455000',NULL);
CREATE TABLE sources (
	digest VARCHAR(64) NOT NULL,
	files TEXT NOT NULL,
	size INTEGER NOT NULL,
	CONSTRAINT pk_sources PRIMARY KEY (digest)
);
INSERT INTO "sources" VALUES('2bbeebd675fc08b6f9468ed28c4dbb59841965477397abc014665c2177594c11','[["train.py","print(0)\n"]]',9);
INSERT INTO "sources" VALUES('b33d13b91c4ae926e23b4a1bec11f01f7c250da8f81a8e8e67bb84d8c27ffc92','[["train.py","print(1)\n"]]',9);
INSERT INTO "sources" VALUES('e01692286d124cbbd87afa8da52bf7c94438461df0216a7a6231ebebeeec05b5','[["train.py","print(2)\n"]]',9);
INSERT INTO "sources" VALUES('0c9b1af07bbb3554ee73a0b5da0136abed693593f4ae4695e1933a6fb07d6471','[["train.py","print(3)\n"]]',9);
CREATE TABLE standings (
	course_task_id INTEGER NOT NULL,
	person_id INTEGER NOT NULL,
	attempt_id INTEGER NOT NULL,
	points DOUBLE NOT NULL,
	max_points DOUBLE NOT NULL,
	verdict VARCHAR(16) NOT NULL,
	late_days INTEGER NOT NULL,
	overridden BOOLEAN NOT NULL,
	CONSTRAINT pk_standings PRIMARY KEY (course_task_id, person_id),
	CONSTRAINT fk_standings_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id) ON DELETE CASCADE,
	CONSTRAINT fk_standings_course_task_id FOREIGN KEY(course_task_id) REFERENCES course_tasks (id) ON DELETE CASCADE,
	CONSTRAINT fk_standings_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE,
	CONSTRAINT ck_standings_verdict CHECK (verdict IN ('judge_error', 'held', 'timed_out', 'deadlocked', 'out_of_memory', 'crashed', 'rejected', 'accepted'))
);
INSERT INTO "standings" VALUES(1,2,1,0.0,100.0,'rejected',2152,0);
INSERT INTO "standings" VALUES(1,3,3,95.0,100.0,'accepted',2518,1);
CREATE TABLE submissions (
	id INTEGER NOT NULL,
	person_id INTEGER NOT NULL,
	course_task_id INTEGER NOT NULL,
	digest VARCHAR(64) NOT NULL,
	name VARCHAR(200) NOT NULL,
	submitted_at DATETIME NOT NULL,
	idempotency_key VARCHAR(80),
	CONSTRAINT pk_submissions PRIMARY KEY (id),
	CONSTRAINT fk_submissions_course_task_id FOREIGN KEY(course_task_id) REFERENCES course_tasks (id) ON DELETE CASCADE,
	CONSTRAINT fk_submissions_digest FOREIGN KEY(digest) REFERENCES sources (digest),
	CONSTRAINT fk_submissions_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE,
	CONSTRAINT uq_submissions_person_id_idempotency_key UNIQUE (person_id, idempotency_key)
);
INSERT INTO "submissions" VALUES(1,2,1,'2bbeebd675fc08b6f9468ed28c4dbb59841965477397abc014665c2177594c11','train','2026-11-22 23:05:28.491000',NULL);
INSERT INTO "submissions" VALUES(2,2,1,'b33d13b91c4ae926e23b4a1bec11f01f7c250da8f81a8e8e67bb84d8c27ffc92','train','2026-11-22 23:05:28.573000',NULL);
INSERT INTO "submissions" VALUES(3,3,1,'e01692286d124cbbd87afa8da52bf7c94438461df0216a7a6231ebebeeec05b5','train','2026-11-22 23:05:28.603000',NULL);
INSERT INTO "submissions" VALUES(4,3,2,'0c9b1af07bbb3554ee73a0b5da0136abed693593f4ae4695e1933a6fb07d6471','train','2026-11-22 23:05:28.930000',NULL);
CREATE TABLE turns (
	person_id INTEGER NOT NULL,
	lane VARCHAR(16) NOT NULL,
	turn INTEGER NOT NULL,
	CONSTRAINT pk_turns PRIMARY KEY (person_id, lane),
	CONSTRAINT fk_turns_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE,
	CONSTRAINT ck_turns_lane CHECK (lane IN ('interactive', 'regrade'))
);
INSERT INTO "turns" VALUES(2,'interactive',2);
INSERT INTO "turns" VALUES(3,'interactive',3);
INSERT INTO "turns" VALUES(2,'regrade',1);
CREATE TABLE workers (
	name VARCHAR(120) NOT NULL,
	needs TEXT NOT NULL,
	slots INTEGER NOT NULL,
	seen_at DATETIME NOT NULL,
	draining BOOLEAN NOT NULL, host TEXT,
	CONSTRAINT pk_workers PRIMARY KEY (name)
);
INSERT INTO "workers" VALUES('w1','["cpu"]',1,'2026-11-22 23:05:28.941000',0,'{"num_gpus":2,"num_leases":null,"num_waiting":null,"num_containers":4}');
CREATE INDEX ix_api_tokens_person_id ON api_tokens (person_id);
CREATE INDEX ix_certificates_person_id ON certificates (person_id);
CREATE INDEX ix_enrolments_person_id ON enrolments (person_id);
CREATE INDEX ix_invitations_course_id ON invitations (course_id);
CREATE INDEX ix_extensions_course_task_id ON extensions (course_task_id);
CREATE INDEX ix_submissions_course_task_id ON submissions (course_task_id);
CREATE INDEX ix_submissions_digest ON submissions (digest);
CREATE INDEX ix_attempts_batch ON attempts (batch);
CREATE INDEX ix_attempts_cached_from ON attempts (cached_from);
CREATE INDEX ix_attempts_leases ON attempts (lease_until) WHERE state = 'running';
CREATE INDEX ix_attempts_measured ON attempts (course_task_id, need, finished_at);
CREATE INDEX ix_attempts_of_person ON attempts (person_id, course_task_id, id);
CREATE INDEX ix_attempts_of_task ON attempts (course_task_id, person_id, id);
CREATE INDEX ix_attempts_regrade_of ON attempts (regrade_of);
CREATE INDEX ix_attempts_same ON attempts (digest, task_version, profile);
CREATE INDEX ix_attempts_submission_id ON attempts (submission_id);
CREATE INDEX ix_attempts_waiting ON attempts (lane, need, person_id, id) WHERE state = 'queued';
CREATE INDEX ix_events_actor_id ON events (actor_id);
CREATE INDEX ix_events_subject ON events (subject, id);
CREATE INDEX ix_grade_codes_class ON grade_codes (course_task_id, code, person_id, severity);
CREATE INDEX ix_grade_codes_person_id ON grade_codes (person_id);
CREATE INDEX ix_outbox_attempt_id ON outbox (attempt_id);
CREATE INDEX ix_outbox_unsent ON outbox (id) WHERE sent_at IS NULL;
CREATE INDEX ix_gates_actor_id ON gates (actor_id);
CREATE INDEX ix_turns_last ON turns (lane, turn);
CREATE INDEX ix_artifacts_digest ON artifacts (digest);
CREATE INDEX ix_comments_attempt_id ON comments (attempt_id);
CREATE INDEX ix_comments_author_id ON comments (author_id);
CREATE INDEX ix_overrides_actor_id ON overrides (actor_id);
CREATE INDEX ix_overrides_attempt_id ON overrides (attempt_id);
CREATE INDEX ix_standings_attempt_id ON standings (attempt_id);
CREATE INDEX ix_standings_of_person ON standings (person_id);
COMMIT;
