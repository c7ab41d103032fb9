#error the candidate's own header hides CUDA's
