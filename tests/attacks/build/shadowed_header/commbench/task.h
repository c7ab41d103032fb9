#error the candidate's own header hides the harness's
