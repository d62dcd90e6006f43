# What the grader is told here; both programs read it.
export GRADER_TASKS_DIR=/autograder/source/course
export GRADER_STATE_DIR=/autograder/state
export GRADER_RUNTIME=process
export GRADER_DATASET={{dataset}}
export GRADER_PROFILE={{profile}}
